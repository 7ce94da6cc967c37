-- write webhook_inbox: delete old processed deliveries
DELETE FROM webhook_inbox WHERE id IN (
    SELECT id FROM webhook_inbox WHERE finished_at IS NOT NULL AND finished_at < :before ORDER BY finished_at LIMIT :limit);

-- write provedor_mensagens: delete old reports of the gateway about sent messages
DELETE FROM provedor_mensagens WHERE provider_message_id IN (
    SELECT provider_message_id FROM provedor_mensagens WHERE created_at < :before ORDER BY created_at LIMIT :limit);
