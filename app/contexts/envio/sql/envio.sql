-- read facts: all facts that decide whether a message may be sent now
SELECT message.tipo, message.conteudo, message.telefone_destino, message.metadata, message.created_at, message.campanha_id,
       message.conversa_id, message.cliente_id, message.tentativas, message.max_tentativas, message.cancelamento_pedido,
       coalesce(message.devida_em, message.created_at) AS "devida_em [TIMESTAMPTZ]",
       doctor.opt_out OR doctor.status IN ('optout', 'opt_out') AS "opt_out [BOOLEAN]", doctor.opted_out, doctor.deleted_at,
       state.permission_state, state.cooling_off_until, state.next_allowed_at, state.last_inbound_at,
       campaign.status AS campanha_status, campaign.tipo_campanha, message.chip_id,
       CASE WHEN message.envio_hash IS NOT NULL THEN coalesce(chip.instance_name, message.conta_id) END AS tentada_por,
       message.conta_id,
       message.conta_id IS NOT NULL AND EXISTS (
           SELECT 1 FROM fila_mensagens AS earlier
           WHERE earlier.conta_id = message.conta_id AND earlier.cliente_id = message.cliente_id
             AND (earlier.created_at, earlier.id) < (message.created_at, message.id)
             AND (earlier.envio_estado IN ('intent', 'unknown')
                  OR earlier.envio_estado IS NULL AND earlier.status IN ('pendente', 'processando')
                     AND (earlier.tentativas > 0 OR coalesce(earlier.devida_em, earlier.created_at) <= :now)
                     AND earlier.agendar_para <= :soon)) AS "atras_de_outra [BOOLEAN]",
       EXISTS (SELECT 1 FROM external_contacts AS other WHERE other.telefone IN (message.telefone_destino, :other_form)
               AND other.permission_state = 'opted_out')
           OR EXISTS (SELECT 1 FROM optouts_do_diario WHERE digest = :digest) AS "externo_parou [BOOLEAN]",
       EXISTS (SELECT 1 FROM optouts_provaveis AS doubt WHERE doubt.telefone_chave = :chave AND doubt.decisao IS NULL)
           AS "optout_em_duvida [BOOLEAN]",
       EXISTS (SELECT 1 FROM conversations AS talk WHERE talk.cliente_id = message.cliente_id AND talk.controlled_by = 'human'
               AND talk.status IN ('active', 'paused', 'escalated')) AS "com_pessoa [BOOLEAN]",
       (SELECT count(*) FROM fila_mensagens AS sent WHERE sent.cliente_id = message.cliente_id AND sent.status = 'enviada'
        AND sent.enviada_em > :week_ago AND sent.tipo NOT IN ('resposta', 'recebimento', 'retomada')) AS contatos_7d,
       (SELECT max(history.sent_at) FROM campaign_contact_history AS history WHERE history.cliente_id = message.cliente_id
        AND history.campaign_id <> coalesce(message.campanha_id, -1)) AS "outra_campanha_em [TIMESTAMPTZ]",
       (SELECT max(coalesce(same.enviada_em, same.envio_desde)) FROM fila_mensagens AS same
        WHERE same.cliente_id = message.cliente_id AND same.envio_hash = :hash AND same.id <> message.id
        AND (same.status = 'enviada' OR same.envio_estado IS NOT NULL)) AS "mesmas_palavras_em [TIMESTAMPTZ]",
       EXISTS (SELECT 1 FROM interacoes AS came WHERE came.provider_message_id = :inbound AND came.tipo = 'entrada'
               AND came.cliente_id = message.cliente_id) AS "prova_entrada [BOOLEAN]",
       (SELECT night.recebida_em FROM mensagens_fora_horario AS night WHERE night.inbound_message_id = :inbound
        AND night.cliente_id = message.cliente_id) AS "fora_horario_em [TIMESTAMPTZ]",
       message.tipo = 'recuperacao' AND (
           NOT EXISTS (SELECT 1 FROM vagas_grupo AS asked WHERE asked.dm_recovery_mensagem_id = message.id
                       AND asked.status = 'aguardando_revisao')
           OR EXISTS (SELECT 1 FROM contatos_grupo AS poster WHERE poster.telefone IN (message.telefone_destino, :other_form)
                      AND poster.bloqueado_em IS NOT NULL))
           OR message.tipo IN ('handoff', 'lembrete_handoff') AND NOT EXISTS (
               SELECT 1 FROM external_handoffs AS handoff WHERE message.id IN (handoff.mensagem_id, handoff.lembrete_id)
               AND handoff.status IN ('pending', 'contacted'))
           OR EXISTS (SELECT 1 FROM gatilhos_contatos AS contact LEFT JOIN vagas AS done ON done.id = contact.vaga_id
                      WHERE contact.mensagem_id = message.id
                        AND (contact.gatilho = 'discovery_autonomo' AND coalesce(doctor.especialidade, '') <> ''
                             OR contact.gatilho = 'reativacao_autonoma'
                                AND (state.last_inbound_at > contact.created_at OR state.last_outbound_at > contact.created_at)
                             OR contact.gatilho = 'feedback_autonomo' AND (done.status <> 'realizada' OR done.deleted_at IS NOT NULL)
                             OR EXISTS (SELECT 1 FROM gatilhos_contatos AS newer WHERE newer.cliente_id = contact.cliente_id
                                        AND newer.gatilho = contact.gatilho AND newer.created_at > contact.created_at
                                        AND newer.vaga_id IS NULL))) AS "sem_assunto [BOOLEAN]",
       (SELECT talk.pausado_ate FROM conversations AS talk WHERE talk.cliente_id = message.cliente_id
        AND talk.status IN ('active', 'paused', 'escalated')) AS "pausado_ate [TIMESTAMPTZ]",
       message.tipo IN ('followup_1', 'followup_2', 'followup_3') AND message.conversa_id IS NOT NULL AND NOT EXISTS (
           SELECT 1 FROM conversations AS talk
           WHERE talk.id = message.conversa_id AND talk.status IN ('active', 'escalated')
             AND talk.stage = CASE message.tipo WHEN 'followup_1' THEN 'msg_enviada' WHEN 'followup_2' THEN 'followup_1_enviado'
                                                ELSE 'followup_2_enviado' END
             AND (talk.pausado_ate IS NULL OR talk.pausado_ate <= :now)
             AND talk.ultima_mensagem_em <= message.created_at) AS "followup_superado [BOOLEAN]",
       message.tipo IN ('oferta', 'followup_2') AND EXISTS (
           SELECT 1 FROM vagas_ofertas AS offer JOIN vagas AS vaga ON vaga.id = offer.vaga_id
           WHERE offer.mensagem_id = message.id
             AND (vaga.status NOT IN ('aberta', 'anunciada') OR vaga.deleted_at IS NOT NULL)) AS "vaga_ocupada [BOOLEAN]"
FROM fila_mensagens AS message
JOIN clientes AS doctor ON doctor.id = message.cliente_id
LEFT JOIN doctor_state AS state ON state.cliente_id = message.cliente_id
LEFT JOIN campanhas AS campaign ON campaign.id = message.campanha_id
LEFT JOIN chips AS chip ON chip.id = message.chip_id
WHERE message.id = :id AND message.fence = :fence AND message.lease_until IS NOT NULL AND message.envio_estado IS NULL;

-- write intend: store the intent; from here on the message counts as possibly sent until proved otherwise
UPDATE fila_mensagens
SET envio_estado = 'intent', envio_desde = :now, envio_hash = :hash, envio_reserva = :reserva, envio_buscas = 0, chip_id = :chip_id,
    conta_id = :conta_id, conversa_id = :conversa_id, updated_at = :now
WHERE id = :id AND fence = :fence AND lease_until > :now AND envio_estado IS NULL AND NOT cancelamento_pedido;

-- write park_unproven: park a message after a restore, because there is no proof whether it was sent; an operator
-- decides
UPDATE fila_mensagens
SET envio_estado = 'parked', envio_desde = :now, envio_hash = :hash, outcome_reason_code = :reason, updated_at = :now
WHERE id = :id AND fence = :fence AND envio_estado IS NULL;

-- read was_decided: whether an operator has decided about the message since an instant
SELECT 1 AS decided FROM audit_log WHERE at >= :since AND action = 'mensagem.decidir' AND subject = :id LIMIT 1;

-- write take_back: delete the intent of a message that provably was not sent
UPDATE fila_mensagens SET envio_estado = NULL, envio_desde = NULL, envio_reserva = NULL, updated_at = :now
WHERE id = :id AND fence = :fence AND envio_estado = 'intent';

-- write doubt: mark a message as possibly sent; the attempt is counted here, because a snooze counts none
UPDATE fila_mensagens SET envio_estado = 'unknown', tentativas = tentativas + 1, outcome_reason_code = :reason, updated_at = :now
WHERE id = :id AND fence = :fence AND envio_estado = 'intent';

-- write left: mark a message as sent, with the gateway's id. The new fence makes writes of other reconcilers, and of a
-- worker that holds the message without an intent, change nothing
UPDATE fila_mensagens
SET status = 'enviada', fence = fence + 1, lease_until = NULL, owner = NULL, envio_estado = NULL, envio_desde = NULL,
    envio_reserva = NULL, provider_message_id = :message_id, enviada_em = :em, outcome = :outcome, outcome_reason_code = :reason,
    outcome_at = :now, finalizada_em = coalesce(finalizada_em, :now), erro = NULL, updated_at = :now
WHERE id = :id AND provider_message_id IS NULL
  AND (fence = :fence AND lease_until IS NULL
       OR :is_proof AND status IN ('pendente', 'processando') AND (lease_until IS NULL OR envio_estado IS NULL));

-- write ended: end a message that will not be sent
UPDATE fila_mensagens
SET status = :status, fence = fence + 1, envio_estado = NULL, envio_desde = NULL, envio_reserva = NULL, outcome = :outcome,
    outcome_reason_code = :reason, outcome_at = :now, finalizada_em = coalesce(finalizada_em, :now), erro = :reason, updated_at = :now
WHERE id = :id AND fence = :fence AND lease_until IS NULL AND provider_message_id IS NULL;

-- write add_dead_letter: store a message whose last attempt failed, for inspection
INSERT INTO fila_mensagens_dlq (id, mensagem_original_id, cliente_id, conversa_id, conteudo, tipo, metadata, tentativas, ultimo_erro,
                                outcome, movido_para_dlq_em)
SELECT :new_id, id, cliente_id, conversa_id, conteudo, tipo, metadata, tentativas, :reason, :outcome, :now
FROM fila_mensagens WHERE id = :id;

-- read dead: dead messages without a dead letter, because their workers died
SELECT dead.id, dead.tipo, dead.cliente_id, dead.conversa_id, dead.metadata, coalesce(dead.outcome, 'FAILED_TIMEOUT') AS outcome,
       dead.erro
FROM fila_mensagens AS dead
WHERE dead.status = 'erro' AND dead.envio_estado IS NULL
  AND NOT EXISTS (SELECT 1 FROM fila_mensagens_dlq AS buried WHERE buried.mensagem_original_id = dead.id AND NOT buried.reprocessado)
LIMIT :limit;

-- write name_outcome: set the outcome of a dead message whose workers died before they wrote one
UPDATE fila_mensagens SET outcome = :outcome, outcome_reason_code = erro, outcome_at = :now, updated_at = :now
WHERE id = :id AND status = 'erro' AND outcome IS NULL;

-- write remove_dead_letters: mark dead letters whose message was retried or discarded, with the operator who did it
UPDATE fila_mensagens_dlq SET reprocessado = TRUE, reprocessado_em = :now, reprocessado_por = (
    SELECT audit.actor FROM audit_log AS audit
    WHERE audit.subject = 'fila_mensagens:' || CAST(fila_mensagens_dlq.mensagem_original_id AS TEXT)
      AND audit.action IN ('queue.retry', 'queue.discard') AND audit.at >= fila_mensagens_dlq.movido_para_dlq_em
    ORDER BY audit.at DESC LIMIT 1)
WHERE NOT reprocessado AND NOT EXISTS (SELECT 1 FROM fila_mensagens AS dead
                                       WHERE dead.id = fila_mensagens_dlq.mensagem_original_id AND dead.status = 'erro');

-- read in_doubt: messages in doubt without a lease, fewest searches first, then oldest. A message whose worker died is
-- rescued first, so that a later rescue cannot release it after it was found
SELECT message.id, message.fence, message.cliente_id, message.conversa_id, message.campanha_id, message.telefone_destino,
       message.conteudo, message.tipo, message.envio_estado, message.envio_desde, message.envio_hash, message.envio_reserva,
       message.envio_buscas, message.chip_id, message.conta_id, message.tentativas, message.max_tentativas,
       message.cancelamento_pedido, message.metadata, message.created_at,
       coalesce(chip.instance_name, message.conta_id) AS instance_name
FROM fila_mensagens AS message LEFT JOIN chips AS chip ON chip.id = message.chip_id
WHERE message.fila = :fila AND message.envio_estado IN ('intent', 'unknown') AND message.lease_until IS NULL
ORDER BY message.envio_buscas, message.envio_desde LIMIT :limit;

-- read doubts: every message in doubt, for operators
SELECT message.id, message.fila, message.envio_estado, message.envio_desde, message.tipo, message.tentativas, message.outcome_reason_code,
       coalesce(chip.instance_name, account.nome) AS instance_name
FROM fila_mensagens AS message LEFT JOIN chips AS chip ON chip.id = message.chip_id
LEFT JOIN telegram_contas AS account ON account.id = message.conta_id
WHERE message.envio_estado IS NOT NULL ORDER BY message.envio_desde LIMIT :limit;

-- write looked: record a search that ended without proof
UPDATE fila_mensagens SET envio_estado = 'unknown', envio_buscas = envio_buscas + 1, updated_at = :now
WHERE id = :id AND envio_estado IN ('intent', 'unknown') AND fence = :fence AND lease_until IS NULL;

-- write park: park a message without proof in time; an operator decides
UPDATE fila_mensagens SET envio_estado = 'parked', outcome_reason_code = :reason, updated_at = :now
WHERE id = :id AND envio_estado IN ('intent', 'unknown') AND fence = :fence AND lease_until IS NULL;

-- write absent: release a message that provably was not sent; it may be sent again
UPDATE fila_mensagens
SET status = 'pendente', fence = fence + 1, envio_estado = NULL, envio_desde = NULL, envio_reserva = NULL,
    agendar_para = :now, lease_until = NULL, owner = NULL, finalizada_em = NULL, updated_at = :now
WHERE id = :id AND envio_estado IN ('intent', 'unknown', 'parked') AND fence = :fence AND lease_until IS NULL;

-- read witness: the last message that the same chip sent before an instant and that has an id of the gateway
SELECT witness.telefone_destino, witness.provider_message_id, witness.enviada_em
FROM fila_mensagens AS witness JOIN chips AS chip ON chip.id = witness.chip_id
WHERE witness.status = 'enviada' AND witness.enviada_em < :before AND witness.enviada_em > :since
  AND chip.instance_name = :instance AND witness.provider_message_id NOT LIKE 'decidida:%'
ORDER BY witness.enviada_em DESC LIMIT 1;

-- read claimed: another queued message that already has this gateway id
SELECT id FROM fila_mensagens WHERE provider_message_id = :message_id AND id <> :id;

-- read message: one queued message
SELECT id, fence, status, envio_estado, cliente_id, conversa_id, campanha_id, telefone_destino, conteudo, tipo, chip_id, conta_id, metadata,
       envio_reserva, tentativas
FROM fila_mensagens WHERE id = :id;

-- read expired: due messages that may have waited too long
SELECT id, coalesce(devida_em, created_at) AS "devida_em [TIMESTAMPTZ]" FROM fila_mensagens
WHERE status = 'pendente' AND lease_until IS NULL AND envio_estado IS NULL AND agendar_para <= :now
  AND coalesce(devida_em, created_at) <= :before
  AND NOT EXISTS (SELECT 1 FROM campanhas AS campaign WHERE campaign.id = campanha_id AND campaign.status = 'pausada')
  AND NOT EXISTS (SELECT 1 FROM conversations AS talk WHERE talk.cliente_id = fila_mensagens.cliente_id
                  AND talk.controlled_by = 'human' AND talk.status IN ('active', 'paused', 'escalated'))
ORDER BY agendar_para LIMIT :limit;

-- write expire: cancel a message that waited too long to be useful
UPDATE fila_mensagens
SET status = 'cancelada', outcome = 'FAILED_EXPIRED', outcome_reason_code = :reason, outcome_at = :now, finalizada_em = :now,
    updated_at = :now
WHERE id = :id AND status = 'pendente' AND lease_until IS NULL AND envio_estado IS NULL
RETURNING id, tipo, cliente_id, conversa_id, metadata;

-- write count_on_chip: count a sent message of a chip
UPDATE chips SET msgs_enviadas_total = msgs_enviadas_total + 1, msgs_enviadas_hoje = msgs_enviadas_hoje + 1, updated_at = :now
WHERE id = :chip_id;

-- write count_on_doctor: record the contact in the doctor's state
INSERT INTO doctor_state (cliente_id, permission_state, last_outbound_at, last_touch_at, last_touch_method,
                          last_touch_campaign_id, updated_at)
VALUES (:cliente_id, 'initial', :em, :em, :tipo, :campanha_id, :now)
ON CONFLICT (cliente_id) DO UPDATE
SET permission_state = CASE WHEN doctor_state.permission_state = 'none' THEN 'initial' ELSE doctor_state.permission_state END,
    last_outbound_at = CASE WHEN doctor_state.last_outbound_at > excluded.last_outbound_at
                            THEN doctor_state.last_outbound_at ELSE excluded.last_outbound_at END,
    last_touch_at = excluded.last_touch_at, last_touch_method = excluded.last_touch_method,
    last_touch_campaign_id = coalesce(excluded.last_touch_campaign_id, doctor_state.last_touch_campaign_id),
    updated_at = excluded.updated_at;

-- write count_on_conversation: record the contact in the conversation
UPDATE conversations
SET message_count = message_count + 1, ultima_mensagem_em = :em, last_touch_at = :em, last_touch_type = :tipo,
    last_touch_campaign_id = coalesce(:campanha_id, last_touch_campaign_id), first_touch_at = coalesce(first_touch_at, :em),
    first_touch_type = coalesce(first_touch_type, :tipo), first_touch_campaign_id = coalesce(first_touch_campaign_id, :campanha_id),
    stage = CASE WHEN stage = 'novo' THEN 'msg_enviada' ELSE stage END, updated_at = :now
WHERE id = :conversa_id;
