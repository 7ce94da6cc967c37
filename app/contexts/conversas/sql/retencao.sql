-- write interacoes: remove texts and phone numbers of old messages; the rows stay, so that messages can still be counted by class
UPDATE interacoes SET conteudo = '[removido]', telefone = NULL, remote_jid = 'removido:' || id WHERE id IN (
    SELECT id FROM interacoes WHERE conteudo <> '[removido]' AND created_at < :before ORDER BY created_at LIMIT :limit);

-- write fila_mensagens: remove texts of old messages that were sent or will never be sent
UPDATE fila_mensagens SET conteudo = '[removido]', metadata = '{}' WHERE id IN (
    SELECT id FROM fila_mensagens
    WHERE conteudo <> '[removido]' AND finalizada_em IS NOT NULL AND finalizada_em < :before AND lease_until IS NULL
      AND envio_estado IS NULL AND status NOT IN ('pendente', 'processando')
    ORDER BY finalizada_em LIMIT :limit);

-- write fila_mensagens_dlq: delete old dead letters
DELETE FROM fila_mensagens_dlq WHERE id IN (
    SELECT id FROM fila_mensagens_dlq WHERE movido_para_dlq_em < :before ORDER BY movido_para_dlq_em LIMIT :limit);
