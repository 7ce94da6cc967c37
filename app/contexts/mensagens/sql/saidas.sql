-- read last_inbound: the last message of a doctor
SELECT provider_message_id FROM interacoes WHERE cliente_id = :cliente_id AND tipo = 'entrada' ORDER BY created_at DESC, id DESC LIMIT 1;
