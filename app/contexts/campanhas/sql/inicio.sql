-- read due: campaigns to start, and started campaigns with messages still to queue
SELECT id, tipo_campanha, status, corpo, audience_filters, pode_ofertar, objetivo, publico_em, agendar_para, lote_id, enfileirada_em
FROM campanhas
WHERE (status = 'agendada' AND agendar_para <= :now) OR (status = 'ativa' AND (enfileirada_em IS NULL OR lote_id IS NULL))
ORDER BY agendar_para, id LIMIT :limit;

-- write refuse: pause a campaign that cannot be sent; an operator corrects it
UPDATE campanhas SET status = 'pausada', erro = :why, updated_at = :now WHERE id = :id AND status IN ('agendada', 'ativa');

-- write begin: activate a campaign, unless an operator stopped it meanwhile
UPDATE campanhas SET status = 'ativa', iniciada_em = coalesce(iniciada_em, :now), erro = NULL, updated_at = :now
WHERE id = :id AND (status = 'ativa' OR (status = 'agendada' AND agendar_para <= :now));

-- write join: give a campaign its batch, unless it has one
UPDATE campanhas SET lote_id = :lote WHERE id = :id AND lote_id IS NULL;

-- read words: specialities and places of the doctors
SELECT DISTINCT especialidade, cidade, estado FROM clientes WHERE deleted_at IS NULL AND tipo = 'medico';

-- read candidates: doctors of the audience that have no row yet, with all facts of the decision
SELECT doctor.id, doctor.primeiro_nome, doctor.especialidade, doctor.pressure_score_atual,
       doctor.deleted_at IS NOT NULL AS "removido [BOOLEAN]",
       doctor.status_telefone = 'invalido' AS "telefone_invalido [BOOLEAN]",
       doctor.opt_out OR doctor.opted_out OR doctor.status IN ('optout', 'opt_out')
           OR coalesce(state.permission_state, '') = 'opted_out'
           OR EXISTS (SELECT 1 FROM external_contacts AS other
                      WHERE other.telefone IN (doctor.telefone, doctor.telefone_chave,
                                               CASE WHEN length(doctor.telefone_chave) = 12 AND substr(doctor.telefone_chave, 1, 2) = '55'
                                                         AND substr(doctor.telefone_chave, 5, 1) IN ('6', '7', '8', '9')
                                                    THEN substr(doctor.telefone_chave, 1, 4) || '9' || substr(doctor.telefone_chave, 5) END)
                      AND other.permission_state = 'opted_out') AS "optout [BOOLEAN]",
       state.permission_state, state.cooling_off_until, state.next_allowed_at, state.last_inbound_at, state.last_outbound_at,
       (SELECT count(*) FROM fila_mensagens AS sent WHERE sent.cliente_id = doctor.id AND sent.status = 'enviada'
        AND sent.enviada_em > :week_ago AND sent.tipo NOT IN ('resposta', 'recebimento', 'retomada')) AS contatos_7d,
       (SELECT max(history.sent_at) FROM campaign_contact_history AS history WHERE history.cliente_id = doctor.id
        AND history.campaign_id <> :id) AS "outra_campanha_em [TIMESTAMPTZ]",
       (SELECT count(*) FROM campaign_contact_history AS history WHERE history.cliente_id = doctor.id
        AND history.campaign_id <> :id) AS campanhas_recebidas,
       EXISTS (SELECT 1 FROM fila_mensagens AS queued WHERE queued.cliente_id = doctor.id AND queued.campanha_id <> :id
               AND queued.status IN ('pendente', 'processando')) AS "na_fila_de_outra [BOOLEAN]",
       EXISTS (SELECT 1 FROM conversations AS talk WHERE talk.cliente_id = doctor.id AND talk.controlled_by = 'human'
               AND talk.status IN ('active', 'paused', 'escalated')) AS "conversa_humana [BOOLEAN]",
       EXISTS (SELECT 1 FROM interacoes AS came WHERE came.cliente_id = doctor.id AND came.tipo = 'entrada')
           AS "ja_respondeu [BOOLEAN]"
FROM clientes AS doctor LEFT JOIN doctor_state AS state ON state.cliente_id = doctor.id
WHERE doctor.tipo = 'medico' AND {wanted}
  AND NOT EXISTS (SELECT 1 FROM campanha_destinatarios AS seen WHERE seen.campanha_id = :id AND seen.cliente_id = doctor.id);

-- read known: how many of these ids are ids of doctors
SELECT count(*) AS quantos FROM clientes AS doctor WHERE doctor.tipo = 'medico' AND doctor.id IN ({clientes});

-- write hold: lock the campaign until the transaction ends, if it is still active
UPDATE campanhas SET updated_at = :now WHERE id = :id AND status = 'ativa';

-- read considered: number of stored rows, and of the recipients among them
SELECT coalesce(max(posicao), 0) AS vistos, count(CASE WHEN situacao <> 'excluido' THEN 1 END) AS escolhidos
FROM campanha_destinatarios WHERE campanha_id = :id;

-- write consider: store a recipient, or an excluded doctor with the reason
INSERT INTO campanha_destinatarios (campanha_id, cliente_id, situacao, motivo, posicao, created_at, updated_at)
VALUES (:id, :cliente_id, :situacao, :motivo, :posicao, :now, :now) ON CONFLICT DO NOTHING;

-- write decided: record that the audience is complete and stays as it is
UPDATE campanhas
SET publico_em = :now, updated_at = :now,
    total_destinatarios = (SELECT count(*) FROM campanha_destinatarios AS someone
                           WHERE someone.campanha_id = campanhas.id AND someone.situacao <> 'excluido')
WHERE id = :id;

-- read next: the next recipients, and whether a message of this campaign is already queued for each. The + makes SQLite
-- search by doctor, not by campaign
SELECT someone.cliente_id, someone.posicao, doctor.telefone, doctor.primeiro_nome, doctor.especialidade,
       EXISTS (SELECT 1 FROM fila_mensagens AS queued WHERE queued.cliente_id = someone.cliente_id
               AND +queued.campanha_id = someone.campanha_id) AS "na_fila [BOOLEAN]"
FROM campanha_destinatarios AS someone JOIN clientes AS doctor ON doctor.id = someone.cliente_id
WHERE someone.campanha_id = :id AND someone.situacao = 'selecionado' ORDER BY someone.posicao LIMIT :limit;

-- write exclude: exclude a recipient whose text cannot be filled in
UPDATE campanha_destinatarios SET situacao = 'excluido', motivo = :motivo, updated_at = :now
WHERE campanha_id = :id AND cliente_id = :cliente_id;

-- write queued: mark recipients whose messages are queued
UPDATE campanha_destinatarios
SET situacao = 'enfileirado', updated_at = :now,
    fila_mensagem_id = (SELECT message.id FROM fila_mensagens AS message WHERE message.cliente_id = campanha_destinatarios.cliente_id
                        AND +message.campanha_id = campanha_destinatarios.campanha_id ORDER BY message.created_at LIMIT 1)
WHERE campanha_id = :id AND situacao = 'selecionado' AND posicao <= :until;

-- write enqueued: record that all messages are queued
UPDATE campanhas SET enfileirada_em = :now, updated_at = :now WHERE id = :id AND enfileirada_em IS NULL;
