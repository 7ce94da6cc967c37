-- write hold: lock a vacancy until the transaction ends, and read its current values
UPDATE vagas SET status = status WHERE id = :id AND deleted_at IS NULL
RETURNING id AS "id [UUID]", status, cliente_id AS "cliente_id [UUID]", hospital_id AS "hospital_id [UUID]",
          especialidade_id AS "especialidade_id [UUID]", periodo_id, data AS "data [DATE]", hora_inicio, hora_fim, valor, valor_tipo,
          vaga_grupo_id AS "vaga_grupo_id [UUID]", pendente_confirmacao_em AS "pendente_confirmacao_em [TIMESTAMPTZ]";

-- write change: change the state, with the columns that belong to the new state
UPDATE vagas
SET status = :para, updated_at = :now,
    cliente_id = CASE WHEN :para = 'reservada' THEN :cliente_id WHEN :para IN ('aberta', 'anunciada') THEN NULL ELSE cliente_id END,
    fechada_em = CASE WHEN :para IN ('reservada', 'fechada') THEN :now WHEN :para IN ('aberta', 'anunciada') THEN NULL ELSE fechada_em END,
    pendente_confirmacao_em = CASE WHEN :para = 'pendente_confirmacao' THEN :now ELSE pendente_confirmacao_em END,
    realizada_em = CASE WHEN :para = 'realizada' THEN :now ELSE realizada_em END,
    realizada_por = CASE WHEN :para = 'realizada' THEN :por ELSE realizada_por END,
    cancelada_em = CASE WHEN :para = 'cancelada' THEN :now ELSE cancelada_em END,
    cancelada_por = CASE WHEN :para = 'cancelada' THEN :por ELSE cancelada_por END,
    cancelada_motivo = CASE WHEN :para = 'cancelada' THEN :motivo ELSE cancelada_motivo END
WHERE id = :id AND status = :de AND deleted_at IS NULL;

-- write note: insert a line of the history; the caller has locked the vacancy, so the numbers have no gaps or repeats
INSERT INTO vagas_historico (vaga_id, ordem, de, para, por, motivo, cliente_id, em)
SELECT :id, 1 + coalesce(max(ordem), 0), :de, :para, :por, :motivo, :cliente_id, :now FROM vagas_historico WHERE vaga_id = :id
RETURNING ordem;

-- write begin: insert the first line of the history of a new vacancy
INSERT INTO vagas_historico (vaga_id, ordem, para, por, motivo, em)
SELECT vaga.id, 1, vaga.status, :por, :motivo, :now FROM vagas AS vaga WHERE vaga.id = :id
ON CONFLICT DO NOTHING;
