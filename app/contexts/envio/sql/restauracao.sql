-- read messages: messages changed since an instant that have ended, are in progress or in doubt
SELECT id, cliente_id, campanha_id, telefone_destino, conteudo, tipo, prioridade, status, agendar_para, metadata, tentativas,
       max_tentativas, erro, enviada_em, finalizada_em, outcome, outcome_reason_code, outcome_at, chip_id, provider_message_id,
       envio_estado, envio_desde, envio_hash, cancelamento_pedido, created_at, updated_at, devida_em, fila, conta_id
FROM fila_mensagens
WHERE coalesce(updated_at, created_at) >= :since AND (status NOT IN ('pendente', 'processando') OR envio_estado IS NOT NULL);

-- read people: doctors who opted out or were removed; an erased one has no number to opt out
SELECT id, telefone, (opt_out OR opted_out) AND telefone <> '00000000' AS "parou [BOOLEAN]", deleted_at FROM clientes
WHERE opt_out OR opted_out OR deleted_at IS NOT NULL;

-- read phones: phones of all doctors, to match entries of the journal
SELECT id, telefone, opt_out OR opted_out AS "parou [BOOLEAN]", deleted_at FROM clientes;

-- read externals: other contacts who opted out
SELECT telefone FROM external_contacts WHERE permission_state = 'opted_out';

-- read contacts: contacts by campaigns since an instant
SELECT cliente_id, campaign_id, sent_at FROM campaign_contact_history WHERE sent_at >= :since;

-- read echoes: the gateway's echoes of sent messages
SELECT provider_message_id, instance_name, remote_jid, telefone_chave, conteudo_hash, enviada_em, delivery_status, created_at, updated_at
FROM provedor_mensagens WHERE updated_at >= :since;

-- read doctors: existing ids of doctors
SELECT id FROM clientes;

-- read campaigns: existing ids of campaigns
SELECT id FROM campanhas;

-- read chips: existing ids of chips
SELECT id FROM chips;

-- read accounts: existing ids of accounts of Telegram
SELECT id FROM telegram_contas;

-- write take_over: copy the state that a message has in the replaced database
UPDATE fila_mensagens
SET status = :status, tentativas = :tentativas, erro = :erro, enviada_em = :enviada_em, finalizada_em = :finalizada_em, outcome = :outcome,
    outcome_reason_code = :outcome_reason_code, outcome_at = :outcome_at, chip_id = :chip_id, conta_id = :conta_id, provider_message_id = :provider_message_id,
    envio_estado = :envio_estado, envio_desde = :envio_desde, envio_hash = :envio_hash, cancelamento_pedido = :cancelamento_pedido,
    updated_at = :updated_at, envio_reserva = NULL, lease_until = NULL, owner = NULL
WHERE id = :id;

-- write unmatched: record an opt-out of a number that no table has
INSERT INTO optouts_do_diario (digest, created_at) VALUES (:digest, :now) ON CONFLICT DO NOTHING;
