-- read vacancy: a vacancy with its names, and the number and the name of the person who posted it
SELECT vaga.id, vaga.status, vaga.data, vaga.hora_inicio, vaga.hora_fim, vaga.periodo_id, vaga.valor, vaga.valor_tipo,
       hospital.nome AS hospital, hospital.cidade, hospital.estado AS uf, especialidade.nome AS especialidade, periodo.nome AS periodo,
       coalesce(vaga.contato_whatsapp, author.telefone, hidden.telefone) AS telefone, coalesce(vaga.contato_nome, author.nome) AS nome
FROM vagas AS vaga JOIN hospitais AS hospital ON hospital.id = vaga.hospital_id
JOIN especialidades AS especialidade ON especialidade.id = vaga.especialidade_id LEFT JOIN periodos AS periodo ON periodo.id = vaga.periodo_id
LEFT JOIN vagas_grupo AS origin ON origin.id = vaga.vaga_grupo_id
LEFT JOIN contatos_grupo AS author ON author.id = origin.contato_responsavel_id
LEFT JOIN contatos_lid AS hidden ON hidden.lid = author.jid
WHERE vaga.id = :id;

-- read person: name, number and kind of a doctor or a poster
SELECT id, primeiro_nome, telefone, tipo, deleted_at FROM clientes WHERE id = :id;

-- read was_offered: whether the vacancy was offered to any doctor
SELECT 1 AS there FROM vagas_ofertas WHERE vaga_id = :id LIMIT 1;

-- read asked: whether the poster was already asked about this doctor
SELECT 1 AS there FROM external_handoffs WHERE vaga_id = :vaga_id AND cliente_id = :cliente_id;

-- write open: insert a hand-off
INSERT INTO external_handoffs (id, vaga_id, cliente_id, divulgador_id, conversa_id, reserved_until, mensagem_id, created_at, updated_at)
VALUES (:id, :vaga_id, :cliente_id, :divulgador_id, :conversa_id, :ate, :mensagem_id, :now, :now);

-- write hold: lock a hand-off until the transaction ends, and read its current values
UPDATE external_handoffs SET status = status WHERE id = :id
RETURNING id AS "id [UUID]", status, vaga_id AS "vaga_id [UUID]", cliente_id AS "cliente_id [UUID]",
          divulgador_id AS "divulgador_id [UUID]", conversa_id AS "conversa_id [UUID]",
          reserved_until AS "reserved_until [TIMESTAMPTZ]", contatado_em AS "contatado_em [TIMESTAMPTZ]", lembrete_pedido,
          last_followup_at AS "last_followup_at [TIMESTAMPTZ]", lembrete_id AS "lembrete_id [UUID]";

-- read people: the vacancy and the poster of a hand-off, which are locked before the hand-off itself
SELECT vaga_id, divulgador_id FROM external_handoffs WHERE id = :id;

-- write close: end an open hand-off with a decision
UPDATE external_handoffs
SET status = :para, decidido_em = :now, decidido_via = :via, decidido_por = :por, updated_at = :now
WHERE id = :id AND status = :de;

-- write note: insert a line of the history; the caller has locked the hand-off, so the numbers have no gaps or repeats
INSERT INTO external_handoffs_historico (handoff_id, ordem, de, para, por, motivo, em)
SELECT :id, 1 + coalesce(max(ordem), 0), :de, :para, :por, :motivo, :now FROM external_handoffs_historico WHERE handoff_id = :id;

-- write contact: record that the first message was sent
UPDATE external_handoffs SET status = 'contacted', contatado_em = :em, updated_at = :em
WHERE mensagem_id = :mensagem_id AND status = 'pending' RETURNING id AS "id [UUID]";

-- write remind: store the number of a reminder that is being queued; each number is stored once, and only if no earlier
-- reminder is still queued
UPDATE external_handoffs SET lembrete_pedido = :numero, updated_at = :now
WHERE id = :id AND status = 'contacted' AND lembrete_pedido < :numero
  AND NOT EXISTS (SELECT 1 FROM fila_mensagens AS earlier WHERE earlier.id = external_handoffs.lembrete_id
                  AND earlier.status IN ('pendente', 'processando'));

-- write reminding: store the message of the queued reminder
UPDATE external_handoffs SET lembrete_id = :mensagem_id WHERE id = :id;

-- write reminded: record that a reminder was sent
UPDATE external_handoffs SET followup_count = followup_count + 1, last_followup_at = :em, updated_at = :em
WHERE lembrete_id = :mensagem_id RETURNING id AS "id [UUID]", vaga_id AS "vaga_id [UUID]", lembrete_pedido;

-- write use: store that a link decides; a second use changes nothing
INSERT INTO handoff_used_tokens (jti, handoff_id, usado_em) VALUES (:jti, :id, :now) ON CONFLICT DO NOTHING;

-- read was_used: whether a link has decided
SELECT 1 AS there FROM handoff_used_tokens WHERE jti = :jti;

-- read open_of_poster: open hand-offs of a poster who has the first message
SELECT id FROM external_handoffs WHERE divulgador_id = :cliente_id AND status = 'contacted' ORDER BY created_at, id;

-- read last: the type of the last message that was sent to a person, or may have been, and is not an answer
SELECT message.tipo FROM fila_mensagens AS message
WHERE message.cliente_id = :cliente_id AND (message.status = 'enviada' OR message.envio_estado IS NOT NULL)
  AND message.tipo NOT IN ('resposta', 'recebimento', 'retomada', 'sistema')
ORDER BY coalesce(message.enviada_em, message.envio_desde) DESC, message.id DESC LIMIT 1;

-- read pending: all open hand-offs, oldest first, with the state of their vacancy
SELECT handoff.id, handoff.status, handoff.reserved_until, handoff.contatado_em, handoff.lembrete_pedido, handoff.last_followup_at,
       vaga.deleted_at IS NULL AND vaga.status = 'aguardando_confirmacao' AS "espera [BOOLEAN]"
FROM external_handoffs AS handoff JOIN vagas AS vaga ON vaga.id = handoff.vaga_id
WHERE handoff.status IN ('pending', 'contacted') ORDER BY handoff.created_at, handoff.id;

-- read listed: hand-offs, the most recent first
SELECT handoff.id, handoff.vaga_id, handoff.cliente_id, handoff.divulgador_id, handoff.status, handoff.reserved_until,
       handoff.contatado_em, handoff.followup_count, handoff.last_followup_at, handoff.decidido_em, handoff.decidido_via,
       handoff.decidido_por, handoff.created_at, poster.telefone, hospital.nome AS hospital, vaga.data
FROM external_handoffs AS handoff JOIN clientes AS poster ON poster.id = handoff.divulgador_id
JOIN vagas AS vaga ON vaga.id = handoff.vaga_id JOIN hospitais AS hospital ON hospital.id = vaga.hospital_id
WHERE (NOT :so_abertos OR handoff.status IN ('pending', 'contacted')) AND (CAST(:status AS text) IS NULL OR handoff.status = :status)
  AND (NOT :um OR handoff.id = :id)
ORDER BY handoff.created_at DESC, handoff.id LIMIT :limite OFFSET :pular;

-- read history: every change of a hand-off, in order
SELECT ordem, de, para, por, motivo, em FROM external_handoffs_historico WHERE handoff_id = :id ORDER BY ordem;
