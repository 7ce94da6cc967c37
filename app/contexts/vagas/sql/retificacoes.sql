-- read standing: the principal and its vacancy; whether the author posted it again later (posterior), whether one of the
-- two messages has another vacancy of the same shift (duas), whether a later change exists (superada)
SELECT principal.id AS "id [UUID]", principal.status, principal.valor, principal.valor_tipo, principal.hora_inicio, principal.hora_fim,
       vacancy.id AS "vaga_id [UUID]", vacancy.status AS vaga_status,
       EXISTS (SELECT 1 FROM vagas_grupo_fontes AS fonte JOIN mensagens_grupo AS outra ON outra.id = fonte.mensagem_id
               LEFT JOIN contatos_grupo AS contato ON contato.id = fonte.contato_id
               WHERE fonte.vaga_grupo_id = principal.id AND outra.timestamp_msg > mensagem.timestamp_msg
                 AND (fonte.contato_id = :autor OR contato.telefone IN (:telefone, :sem_nono))) AS posterior,
       EXISTS (SELECT 1 FROM vagas_grupo AS outra
               WHERE outra.mensagem_id IN (dita.mensagem_id, principal.mensagem_id) AND outra.id NOT IN (dita.id, principal.id)
                 AND (outra.hash_dedup = principal.hash_dedup
                      OR outra.hash_dedup IS NULL AND outra.data = dita.data AND outra.periodo_raw = dita.periodo_raw
                      AND outra.especialidade_raw = dita.especialidade_raw)) OR dita.mensagem_id = principal.mensagem_id AS duas,
       EXISTS (SELECT 1 FROM vagas_grupo AS outra JOIN mensagens_grupo AS sua ON sua.id = outra.mensagem_id
               LEFT JOIN contatos_grupo AS contato ON contato.id = outra.contato_responsavel_id
               WHERE outra.duplicada_de = principal.id AND outra.status = 'duplicada' AND sua.timestamp_msg > mensagem.timestamp_msg
                 AND (outra.contato_responsavel_id = :autor OR contato.telefone IN (:telefone, :sem_nono))
                 AND (outra.valor <> dita.valor OR outra.hora_inicio <> dita.hora_inicio OR outra.hora_fim <> dita.hora_fim)) AS superada
FROM vagas_grupo AS principal JOIN vagas_grupo AS dita ON dita.id = :id
JOIN mensagens_grupo AS mensagem ON mensagem.id = dita.mensagem_id
LEFT JOIN vagas AS vacancy ON vacancy.vaga_grupo_id = principal.id AND vacancy.deleted_at IS NULL
WHERE principal.id = :principal;

-- write hold: lock an extracted vacancy until the transaction ends
UPDATE vagas_grupo SET updated_at = :now WHERE id = :id;

-- write hold_vacancy: lock an open vacancy; with :oferecida, also one that was offered to a doctor
UPDATE vagas SET updated_at = :now
WHERE id = :id AND deleted_at IS NULL
  AND (status = 'aberta' OR :oferecida
       AND status IN ('anunciada', 'reservada', 'aguardando_confirmacao', 'pendente_confirmacao', 'confirmada'));

-- write rewrite on sqlite: set the fields of the author's later message; delete the positions that refer to the first
-- text
UPDATE vagas_grupo
SET valor = :valor, valor_tipo = :valor_tipo, hora_inicio = :hora_inicio, hora_fim = :hora_fim,
    trechos = json_remove(trechos, '$.valor', '$.valor_tipo', '$.hora_inicio', '$.hora_fim'), updated_at = :now
WHERE id = :id;

-- write rewrite on postgres: set the fields of the author's later message; delete the positions that refer to the first
-- text
UPDATE vagas_grupo
SET valor = :valor, valor_tipo = :valor_tipo, hora_inicio = :hora_inicio, hora_fim = :hora_fim,
    trechos = trechos - 'valor' - 'valor_tipo' - 'hora_inicio' - 'hora_fim', updated_at = :now
WHERE id = :id;

-- write rewrite_vacancy: copy price and hours of an extracted vacancy to its vacancy
UPDATE vagas
SET valor = (SELECT CAST(round(CAST(vaga.valor AS NUMERIC)) AS INTEGER) FROM vagas_grupo AS vaga WHERE vaga.id = :principal),
    valor_tipo = (SELECT vaga.valor_tipo FROM vagas_grupo AS vaga WHERE vaga.id = :principal),
    hora_inicio = (SELECT vaga.hora_inicio FROM vagas_grupo AS vaga WHERE vaga.id = :principal),
    hora_fim = (SELECT vaga.hora_fim FROM vagas_grupo AS vaga WHERE vaga.id = :principal), updated_at = :now
WHERE id = :id;

-- write send_to_review: send a change to review, unless an equal one is in review
UPDATE vagas_grupo SET status = 'aguardando_revisao', eh_duplicada = FALSE, motivo_status = :motivo, updated_at = :now
WHERE id = :id AND status = 'duplicada'
  AND NOT EXISTS (SELECT 1 FROM vagas_grupo AS outra
                  WHERE outra.duplicada_de = vagas_grupo.duplicada_de AND outra.status = 'aguardando_revisao'
                    AND outra.motivo_status = :motivo AND outra.valor = vagas_grupo.valor
                    AND (vagas_grupo.hora_inicio IS NULL OR vagas_grupo.hora_inicio = outra.hora_inicio)
                    AND (vagas_grupo.hora_fim IS NULL OR vagas_grupo.hora_fim = outra.hora_fim));

-- write supersede: mark changes in review that a later message of the author replaces completely
UPDATE vagas_grupo SET status = 'duplicada', eh_duplicada = TRUE, motivo_status = 'mudou_de_novo', updated_at = :now
WHERE duplicada_de = :principal AND status = 'aguardando_revisao' AND motivo_status = :motivo
  AND (valor <> :valor OR hora_inicio <> :hora_inicio OR hora_fim <> :hora_fim)
  AND EXISTS (SELECT 1 FROM mensagens_grupo AS sua JOIN mensagens_grupo AS nova ON nova.timestamp_msg > sua.timestamp_msg
              WHERE sua.id = vagas_grupo.mensagem_id AND nova.id = :mensagem)
  AND (:com_horas OR NOT EXISTS (
      SELECT 1 FROM vagas_grupo AS principal WHERE principal.id = :principal
      AND (principal.hora_inicio <> vagas_grupo.hora_inicio OR principal.hora_fim <> vagas_grupo.hora_fim)));

-- write settled: mark an approved change as done
UPDATE vagas_grupo SET status = 'duplicada', eh_duplicada = TRUE, motivo_status = 'duplicada', updated_at = :now WHERE id = :id;
