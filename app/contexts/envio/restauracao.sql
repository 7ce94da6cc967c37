-- read messages: whatever is no longer simply waiting, and changed since then
SELECT id, cliente_id, campanha_id, telefone_destino, conteudo, tipo, prioridade, status, agendar_para, metadata, tentativas,
       max_tentativas, erro, enviada_em, finalizada_em, outcome, outcome_reason_code, outcome_at, chip_id, provider_message_id,
       envio_estado, envio_desde, envio_hash, cancelamento_pedido, created_at, updated_at, devida_em
FROM fila_mensagens
WHERE coalesce(updated_at, created_at) >= :since AND (status NOT IN ('pendente', 'processando') OR envio_estado IS NOT NULL);

-- read people: doctors who asked us to stop, or were removed
SELECT id, telefone, opt_out OR opted_out AS "parou [BOOLEAN]", deleted_at FROM clientes
WHERE opt_out OR opted_out OR deleted_at IS NOT NULL;

-- read phones: every doctor, to find whom a line of the journal means
SELECT id, telefone, opt_out OR opted_out AS "parou [BOOLEAN]", deleted_at FROM clientes;

-- read externals: everybody else who asked us to stop
SELECT telefone FROM external_contacts WHERE permission_state = 'opted_out';

-- read contacts: which campaign reached whom since then
SELECT cliente_id, campaign_id, sent_at FROM campaign_contact_history WHERE sent_at >= :since;

-- read echoes: what the gateway told us of messages that left
SELECT provider_message_id, instance_name, remote_jid, telefone_chave, conteudo_hash, enviada_em, delivery_status, created_at, updated_at
FROM provedor_mensagens WHERE updated_at >= :since;

-- read doctors: which of them are there
SELECT id FROM clientes;

-- read campaigns: which of them are there
SELECT id FROM campanhas;

-- read chips: which of them are there
SELECT id FROM chips;

-- write take_over: as it was in the replaced database
UPDATE fila_mensagens
SET status = :status, tentativas = :tentativas, erro = :erro, enviada_em = :enviada_em, finalizada_em = :finalizada_em, outcome = :outcome,
    outcome_reason_code = :outcome_reason_code, outcome_at = :outcome_at, chip_id = :chip_id, provider_message_id = :provider_message_id,
    envio_estado = :envio_estado, envio_desde = :envio_desde, envio_hash = :envio_hash, cancelamento_pedido = :cancelamento_pedido,
    updated_at = :updated_at, envio_reserva = NULL, lease_until = NULL, owner = NULL
WHERE id = :id;

-- write unmatched: somebody whose number is in no table asked us to stop
INSERT INTO optouts_do_diario (digest, created_at) VALUES (:digest, :now) ON CONFLICT DO NOTHING;
