-- read talk: a conversation with its state in the help desk; precisa: it is open, and a person handles it or is needed
SELECT talk.id, talk.cliente_id, talk.status, talk.controlled_by, talk.responsavel, talk.chatwoot_conversation_id, talk.chatwoot_estado,
       person.primeiro_nome, pending.motivo,
       talk.status IN ('active', 'paused', 'escalated') AND (talk.controlled_by = 'human' OR pending.id IS NOT NULL) AS precisa
FROM conversations AS talk JOIN clientes AS person ON person.id = talk.cliente_id
LEFT JOIN pendencias AS pending ON pending.cliente_id = talk.cliente_id AND pending.resolvida_em IS NULL
WHERE talk.id = :id ORDER BY pending.created_at LIMIT 1;

-- write linked: store the id and the state of a conversation in the help desk
UPDATE conversations
SET chatwoot_conversation_id = :central_id, chatwoot_desde = coalesce(:desde, chatwoot_desde), chatwoot_estado = :estado
WHERE id = :id;

-- read context: the time of the first message that the help desk shows, counted from the newest
SELECT created_at FROM interacoes WHERE conversation_id = :id ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET :antes;

-- read unpublished: messages of a conversation that the help desk does not have, oldest first
SELECT said.id, said.tipo, said.autor_tipo, said.conteudo
FROM interacoes AS said JOIN conversations AS talk ON talk.id = said.conversation_id
WHERE said.conversation_id = :id AND said.created_at >= talk.chatwoot_desde
  AND NOT EXISTS (SELECT 1 FROM central_mensagens AS there WHERE there.interacao_id = said.id)
ORDER BY said.created_at, said.id LIMIT :limite;

-- write published: record that the help desk has a message
INSERT INTO central_mensagens (interacao_id, created_at) VALUES (:interacao_id, :now) ON CONFLICT DO NOTHING;

-- write written_there: record that the help desk has a sent message, because a person wrote it there
INSERT INTO central_mensagens (interacao_id, created_at)
SELECT said.id, said.created_at FROM fila_mensagens AS queued
JOIN interacoes AS said ON said.provider_message_id = queued.provider_message_id AND said.tipo = 'saida'
WHERE queued.id = :fila_id ON CONFLICT DO NOTHING;

-- read stuck: rows that failed recently, or that wait too long
SELECT count(*) AS items, min(created_at) AS "desde [TIMESTAMPTZ]" FROM central_fila
WHERE status = 'erro' AND finished_at >= :depois OR status IN ('pendente', 'processando') AND created_at <= :atrasado;
