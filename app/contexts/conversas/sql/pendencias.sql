-- write open: open an entry, at most one per sender; another message of the sender increases its count, and an urgent reason
-- replaces another one
INSERT INTO pendencias (id, quem, telefone, cliente_id, conversa_id, provider_message_id, motivo, ultima_em, created_at)
VALUES (:id, :quem, :telefone, :cliente_id, :conversa_id, :message_id, :motivo, :em, :now)
ON CONFLICT (quem) WHERE resolvida_em IS NULL DO UPDATE
SET mensagens = pendencias.mensagens + 1, ultima_em = excluded.ultima_em,
    motivo = CASE WHEN :urgente AND pendencias.motivo NOT IN ('pede_pessoa', 'objecao_grave') THEN excluded.motivo
                  ELSE pendencias.motivo END,
    cliente_id = coalesce(pendencias.cliente_id, excluded.cliente_id),
    conversa_id = coalesce(pendencias.conversa_id, excluded.conversa_id);

-- read open_of: the open entry of a sender
SELECT id, motivo, conversa_id FROM pendencias WHERE quem = :quem AND resolvida_em IS NULL;

-- write resolve: resolve an entry, unless it is already resolved
UPDATE pendencias SET resolvida_em = :now, por = :por, resolucao = :resolucao WHERE id = :id AND resolvida_em IS NULL;

-- write resolve_of_doctor: resolve the open entry of this doctor
UPDATE pendencias SET resolvida_em = :now, por = :por, resolucao = :resolucao
WHERE cliente_id = :cliente_id AND resolvida_em IS NULL;

-- read listed: open entries, oldest first, with the text of the first message
SELECT pending.id, pending.telefone, pending.cliente_id, pending.conversa_id, pending.motivo, pending.mensagens, pending.created_at,
       pending.ultima_em, said.conteudo, said.classe
FROM pendencias AS pending
LEFT JOIN interacoes AS said ON said.provider_message_id = pending.provider_message_id AND said.tipo = 'entrada'
WHERE pending.resolvida_em IS NULL ORDER BY pending.created_at, pending.id LIMIT :limite;

-- read waiting: number of open entries, and the time of the oldest
SELECT count(*) AS items, min(created_at) AS "desde [TIMESTAMPTZ]" FROM pendencias WHERE resolvida_em IS NULL;
