-- read considered: conversations of one stage, those that have been without a message longest first, each with the first reason that prevents a follow-up.
-- After a person returned the conversation to Julia, the time counts from that moment.
SELECT id, cliente_id, stage, desde AS "desde [TIMESTAMPTZ]", pausado_ate, telefone, primeiro_nome, especialidade, impedimento,
       count(*) OVER () AS total FROM (
    SELECT talk.id, talk.cliente_id, talk.stage, talk.desde, talk.pausado_ate, doctor.telefone, doctor.primeiro_nome,
           doctor.especialidade,
           CASE WHEN talk.controlled_by = 'human' THEN 'com_pessoa'
                WHEN talk.status = 'paused' OR talk.pausado_ate > :now THEN 'pausada'
                WHEN doctor.deleted_at IS NOT NULL THEN 'cadastro_removido'
                WHEN doctor.opt_out OR doctor.opted_out OR doctor.status IN ('optout', 'opt_out')
                     OR coalesce(state.permission_state, '') = 'opted_out'
                     OR EXISTS (SELECT 1 FROM external_contacts AS other
                                WHERE other.telefone IN (doctor.telefone, doctor.telefone_chave,
                                                         CASE WHEN length(doctor.telefone_chave) = 12 AND substr(doctor.telefone_chave, 1, 2) = '55'
                                                                   AND substr(doctor.telefone_chave, 5, 1) IN ('6', '7', '8', '9')
                                                              THEN substr(doctor.telefone_chave, 1, 4) || '9' || substr(doctor.telefone_chave, 5) END)
                                AND other.permission_state = 'opted_out') THEN 'optout'
                WHEN EXISTS (SELECT 1 FROM optouts_provaveis AS doubt WHERE doubt.telefone_chave = doctor.telefone_chave
                             AND doubt.decisao IS NULL) THEN 'optout_provavel'
                WHEN doctor.status_telefone = 'invalido' THEN 'telefone_invalido'
                WHEN state.permission_state = 'cooling_off' AND (state.cooling_off_until IS NULL OR state.cooling_off_until > :now)
                     THEN 'em_descanso'
                WHEN state.next_allowed_at > :now THEN 'proximo_contato'
                WHEN (SELECT count(*) FROM fila_mensagens AS sent WHERE sent.cliente_id = doctor.id AND sent.status = 'enviada'
                      AND sent.enviada_em > :week_ago AND sent.tipo NOT IN ('resposta', 'recebimento', 'retomada')) >= :contatos
                     THEN 'limite_contatos'
                WHEN EXISTS (SELECT 1 FROM fila_mensagens AS queued WHERE queued.cliente_id = doctor.id
                             AND (queued.status IN ('pendente', 'processando') OR queued.envio_estado IS NOT NULL)) THEN 'na_fila'
                WHEN (SELECT count(*) FROM fila_mensagens AS failed WHERE failed.conversa_id = talk.id AND failed.tipo = :tipo
                      AND failed.status IN ('erro', 'bloqueada')
                      AND NOT EXISTS (SELECT 1 FROM conversas_historico AS line WHERE line.conversa_id = talk.id
                                      AND line.acao = 'retomar' AND line.em >= failed.created_at)) >= :tentativas THEN 'falhas'
           END AS impedimento
    FROM (SELECT own.id, own.cliente_id, own.stage, own.status, own.controlled_by, own.pausado_ate,
                 coalesce((SELECT max(line.em) FROM conversas_historico AS line WHERE line.conversa_id = own.id
                           AND line.acao = 'devolver' AND line.em > own.ultima_mensagem_em), own.ultima_mensagem_em) AS desde
          FROM conversations AS own
          WHERE own.stage = :estagio AND own.status IN ('active', 'paused', 'escalated') AND own.ultima_mensagem_em <= :antes) AS talk
    JOIN clientes AS doctor ON doctor.id = talk.cliente_id AND doctor.tipo = 'medico'
    LEFT JOIN doctor_state AS state ON state.cliente_id = doctor.id
) AS considered
WHERE desde <= :antes AND (:todas OR coalesce(impedimento, '') = :impedimento)
ORDER BY desde, id LIMIT :limite;
