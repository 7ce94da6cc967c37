-- read doctor: a doctor by phone number, with or without the ninth digit
SELECT id, tipo FROM clientes WHERE telefone_chave = :chave AND deleted_at IS NULL;

-- read chip: one chip by its instance
SELECT id FROM chips WHERE instance_name = :instance;

-- read phone_of_lid: the phone number of a hidden address
SELECT telefone FROM contatos_lid WHERE lid = :lid;

-- write learn_lid: store the phone number of a hidden address
INSERT INTO contatos_lid (lid, telefone, created_at) VALUES (:lid, :telefone, :now)
ON CONFLICT (lid) DO UPDATE SET telefone = excluded.telefone;

-- read asked_hidden: certain or probable opt-outs of a hidden address whose number was unknown
SELECT provider_message_id, pedido FROM interacoes
WHERE remote_jid = :lid AND telefone IS NULL AND (pedido = 'opt_out' OR opt_out = 'provavel');

-- write resolve_hidden: assign messages of a hidden address to its person
UPDATE interacoes SET telefone = :telefone, cliente_id = :cliente_id, autor_tipo = :autor WHERE remote_jid = :lid AND telefone IS NULL;

-- write open_conversation: open a conversation, unless an open one exists
INSERT INTO conversations (id, cliente_id, chip_id, created_at, updated_at) VALUES (:id, :cliente_id, :chip_id, :now, :now)
ON CONFLICT DO NOTHING;

-- read conversation: the open conversation with a doctor
SELECT id, controlled_by FROM conversations WHERE cliente_id = :cliente_id AND status IN ('active', 'paused', 'escalated');

-- write came: store an inbound message; a repeated one changes nothing
INSERT INTO interacoes (conversation_id, cliente_id, tipo, autor_tipo, conteudo, chip_id, telefone, remote_jid,
                        provider_message_id, pedido, classe, opt_out, created_at)
VALUES (:conversation_id, :cliente_id, 'entrada', :autor, :conteudo, :chip_id, :telefone, :jid, :message_id, :pedido,
        :classe, :opt_out, :em)
ON CONFLICT DO NOTHING;

-- write went: store an outbound message with the latest known delivery status; a repeated one changes nothing
INSERT INTO interacoes (conversation_id, cliente_id, tipo, autor_tipo, conteudo, chip_id, telefone, remote_jid,
                        provider_message_id, attributed_campaign_id, delivery_status, created_at)
VALUES (:conversation_id, :cliente_id, 'saida', :autor, :conteudo, :chip_id, :telefone, :jid, :message_id, :campaign_id,
        coalesce((SELECT nullif(reported.delivery_status, 'pending') FROM provedor_mensagens AS reported
                  WHERE reported.provider_message_id = :message_id), 'sent'), :em)
ON CONFLICT DO NOTHING;

-- write count_on_chip: count an inbound message of a chip
UPDATE chips SET msgs_recebidas_total = msgs_recebidas_total + 1, msgs_recebidas_hoje = msgs_recebidas_hoje + 1 WHERE id = :chip_id;

-- write count_on_doctor: count an inbound message of a doctor
UPDATE clientes SET total_interacoes = total_interacoes + 1, ultima_mensagem_data = :em WHERE id = :cliente_id;

-- write count_on_conversation: count an inbound message of a conversation, and move its stage to answered; the answer
-- ends the pause after the last follow-up
UPDATE conversations
SET message_count = message_count + 1, ultima_mensagem_em = :em, updated_at = :now,
    pausado_ate = CASE WHEN stage = 'nao_respondeu' THEN NULL ELSE pausado_ate END,
    stage = CASE WHEN stage IN ('novo', 'msg_enviada', 'followup_1_enviado', 'followup_2_enviado', 'nao_respondeu', 'recontato')
                 THEN 'respondeu' ELSE stage END
WHERE id = :id;

-- write doctor_spoke: permit answers after an inbound message; an opt-out and a rest stay unchanged
INSERT INTO doctor_state (cliente_id, permission_state, last_inbound_at, updated_at) VALUES (:cliente_id, 'active', :em, :now)
ON CONFLICT (cliente_id) DO UPDATE
SET last_inbound_at = CASE WHEN doctor_state.last_inbound_at > excluded.last_inbound_at
                           THEN doctor_state.last_inbound_at ELSE excluded.last_inbound_at END,
    permission_state = CASE WHEN doctor_state.permission_state IN ('none', 'initial') THEN 'active'
                            ELSE doctor_state.permission_state END,
    updated_at = excluded.updated_at;

-- write opt_out_doctor: record the opt-out on the doctor's row
UPDATE clientes SET opt_out = TRUE, opted_out = TRUE, opted_out_at = coalesce(opted_out_at, :now) WHERE id = :cliente_id;

-- write opt_out_state: record the opt-out in the doctor's permission
INSERT INTO doctor_state (cliente_id, permission_state, updated_at) VALUES (:cliente_id, 'opted_out', :now)
ON CONFLICT (cliente_id) DO UPDATE SET permission_state = 'opted_out', updated_at = excluded.updated_at;

-- write opt_out_conversation: move open conversations to the stage optout
UPDATE conversations SET stage = 'optout', updated_at = :now
WHERE cliente_id = :cliente_id AND status IN ('active', 'paused', 'escalated');

-- write opt_out_external: record the opt-out of a person who is not a doctor
INSERT INTO external_contacts (telefone, nome, permission_state, created_at, updated_at)
VALUES (:telefone, :nome, 'opted_out', :now, :now)
ON CONFLICT (telefone) DO UPDATE SET permission_state = 'opted_out', updated_at = excluded.updated_at;

-- read has_stopped: whether the opt-out of this person is already recorded
SELECT 1 AS known FROM clientes WHERE id = :cliente_id AND opt_out AND opted_out
UNION ALL
SELECT 1 FROM external_contacts WHERE telefone IN (:telefone, :other_form) AND permission_state = 'opted_out';

-- write remove_doctor: delete personal data; the number is kept, so that it is never contacted again
UPDATE clientes
SET primeiro_nome = NULL, sobrenome = NULL, cpf = NULL, crm = NULL, especialidade = NULL, cidade = NULL, estado = NULL,
    opt_out = TRUE, opted_out = TRUE, opted_out_at = coalesce(opted_out_at, :now), deleted_at = coalesce(deleted_at, :now)
WHERE id = :cliente_id AND (deleted_at IS NULL OR primeiro_nome IS NOT NULL OR cpf IS NOT NULL OR crm IS NOT NULL);

-- write remove_words: delete the texts of the conversation
UPDATE interacoes SET conteudo = '[removido]' WHERE cliente_id = :cliente_id;

-- write remove_queued_words: delete the texts of settled messages; a message in doubt keeps its text until it is
-- resolved
UPDATE fila_mensagens SET conteudo = '[removido]'
WHERE cliente_id = :cliente_id AND envio_estado IS NULL AND lease_until IS NULL AND status NOT IN ('pendente', 'processando');

-- write remove_dead_words: delete the texts of dead letters
UPDATE fila_mensagens_dlq SET conteudo = '[removido]' WHERE cliente_id = :cliente_id;

-- write record_outgoing: store the gateway's report about a sent message; the delivery status never moves backwards
INSERT INTO provedor_mensagens (provider_message_id, instance_name, remote_jid, telefone_chave, conteudo_hash, enviada_em,
                                delivery_status, created_at, updated_at)
VALUES (:message_id, :instance, :jid, :chave, :hash, :em, :status, :now, :now)
ON CONFLICT (provider_message_id) DO UPDATE
SET remote_jid = coalesce(provedor_mensagens.remote_jid, excluded.remote_jid),
    telefone_chave = coalesce(provedor_mensagens.telefone_chave, excluded.telefone_chave),
    conteudo_hash = coalesce(provedor_mensagens.conteudo_hash, excluded.conteudo_hash),
    enviada_em = coalesce(provedor_mensagens.enviada_em, excluded.enviada_em),
    delivery_status = CASE WHEN CASE provedor_mensagens.delivery_status
            WHEN 'pending' THEN 0 WHEN 'sent' THEN 1 WHEN 'failed' THEN 2 WHEN 'delivered' THEN 3 ELSE 4 END < :rank
        THEN excluded.delivery_status ELSE provedor_mensagens.delivery_status END,
    updated_at = excluded.updated_at;

-- write got_further: update the delivery status in the conversation; it never moves backwards
UPDATE interacoes SET delivery_status = :status
WHERE provider_message_id = :message_id AND tipo = 'saida' AND CASE coalesce(delivery_status, 'pending')
    WHEN 'pending' THEN 0 WHEN 'sent' THEN 1 WHEN 'failed' THEN 2 WHEN 'delivered' THEN 3 ELSE 4 END < :rank;

-- read echoes: messages with this text that were sent to this number since an instant, with the queue row of each
SELECT reported.provider_message_id, reported.instance_name, reported.remote_jid, reported.enviada_em, reported.delivery_status, queued.id AS fila_id
FROM provedor_mensagens AS reported LEFT JOIN fila_mensagens AS queued ON queued.provider_message_id = reported.provider_message_id
WHERE reported.telefone_chave = :chave AND reported.conteudo_hash = :hash AND reported.enviada_em >= :since
ORDER BY reported.enviada_em;

-- write open_doubt: open a question about a probable opt-out; at most one per person
INSERT INTO optouts_provaveis (id, telefone, telefone_chave, cliente_id, provider_message_id, regra, created_at)
VALUES (:id, :telefone, :chave, :cliente_id, :message_id, :regra, :now)
ON CONFLICT DO NOTHING;

-- write close_doubts: close the open question about this person
UPDATE optouts_provaveis SET decisao = 'parar', por = :por, motivo = :motivo, decidida_em = :now
WHERE telefone_chave = :chave AND decisao IS NULL;
