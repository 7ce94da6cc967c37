-- read open: open questions, oldest first, with the text of the message
SELECT doubt.id, doubt.telefone, doubt.cliente_id, doubt.regra, doubt.created_at, said.conteudo
FROM optouts_provaveis AS doubt
LEFT JOIN interacoes AS said ON said.provider_message_id = doubt.provider_message_id AND said.tipo = 'entrada'
WHERE doubt.decisao IS NULL ORDER BY doubt.created_at, doubt.id LIMIT :limite;

-- read one: a question with its decision
SELECT id, telefone, cliente_id, decisao FROM optouts_provaveis WHERE id = :id;

-- write decide: decide a question, unless it is already decided
UPDATE optouts_provaveis SET decisao = :decisao, por = :por, motivo = :motivo, decidida_em = :now
WHERE id = :id AND decisao IS NULL;

-- read waiting: number of open questions, and the time of the oldest
SELECT count(*) AS items, min(created_at) AS "desde [TIMESTAMPTZ]" FROM optouts_provaveis WHERE decisao IS NULL;
