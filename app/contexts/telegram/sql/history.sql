-- write telegram_entrada: delete old processed messages; conversations and groups have their own copies
DELETE FROM telegram_entrada WHERE id IN (
    SELECT id FROM telegram_entrada WHERE finished_at IS NOT NULL AND finished_at < :before ORDER BY finished_at LIMIT :limit);

-- write telegram_historico: delete old back-fills that have ended
DELETE FROM telegram_historico WHERE id IN (
    SELECT id FROM telegram_historico WHERE finished_at IS NOT NULL AND finished_at < :before ORDER BY finished_at LIMIT :limit);

-- write telegram_acoes: delete old actions that have ended
DELETE FROM telegram_acoes WHERE id IN (
    SELECT id FROM telegram_acoes WHERE finished_at IS NOT NULL AND finished_at < :before ORDER BY finished_at LIMIT :limit);

-- write telegram_entidades: forget people and chats without contact
DELETE FROM telegram_entidades WHERE (conta_id, chave) IN (
    SELECT conta_id, chave FROM telegram_entidades WHERE visto_em < :before ORDER BY visto_em LIMIT :limit);

-- write telegram_arquivos: delete the files of messages that ended without being sent
DELETE FROM telegram_arquivos WHERE mensagem_id IN (
    SELECT message.id FROM telegram_arquivos AS file JOIN fila_mensagens AS message ON message.id = file.mensagem_id
    WHERE message.finalizada_em IS NOT NULL AND message.envio_estado IS NULL AND message.finalizada_em < :before
    ORDER BY message.finalizada_em LIMIT :limit);
