-- read discovery: doctors without a known speciality, the oldest record first
{inicio}
    SELECT doctor.id, doctor.telefone, doctor.primeiro_nome, NULL AS vaga_id, NULL AS hospital, NULL AS data, doctor.created_at AS ordem,
           CASE {impedimentos}
                WHEN doctor.status_telefone <> 'validado' THEN 'telefone_nao_validado'
                WHEN EXISTS (SELECT 1 FROM gatilhos_contatos AS earlier WHERE earlier.cliente_id = doctor.id AND earlier.gatilho = :gatilho
                             AND (earlier.enviada_em IS NOT NULL OR earlier.encerrada_em IS NULL))
                     OR EXISTS (SELECT 1 FROM campaign_contact_history AS history JOIN campanhas AS campaign ON campaign.id = history.campaign_id
                                WHERE history.cliente_id = doctor.id AND campaign.tipo_campanha = 'discovery') THEN 'ja_contatado'
                {tentativas}
                WHEN state.last_inbound_at > :talking THEN 'conversa_agora'
                WHEN state.last_outbound_at > :week_ago THEN 'contatado_ha_pouco'
           END AS impedimento
    FROM clientes AS doctor LEFT JOIN doctor_state AS state ON state.cliente_id = doctor.id
    WHERE doctor.tipo = 'medico' AND doctor.deleted_at IS NULL AND coalesce(doctor.especialidade, '') = ''
{fim};

-- read reativacao: doctors who wrote at least once, but with whom no message was exchanged for a long time; the longest silence first
{inicio}
    SELECT doctor.id, doctor.telefone, doctor.primeiro_nome, NULL AS vaga_id, NULL AS hospital, NULL AS data, state.last_inbound_at AS ordem,
           CASE {impedimentos}
                WHEN EXISTS (SELECT 1 FROM gatilhos_contatos AS earlier WHERE earlier.cliente_id = doctor.id AND earlier.gatilho = :gatilho
                             AND earlier.created_at > state.last_inbound_at
                             AND (earlier.enviada_em IS NOT NULL OR earlier.encerrada_em IS NULL)) THEN 'ja_contatado'
                {tentativas}
                WHEN EXISTS (SELECT 1 FROM vagas AS held WHERE held.cliente_id = doctor.id AND held.status = 'reservada'
                             AND held.deleted_at IS NULL) THEN 'ja_tem_plantao'
           END AS impedimento
    FROM clientes AS doctor JOIN doctor_state AS state ON state.cliente_id = doctor.id
    WHERE doctor.tipo = 'medico' AND doctor.deleted_at IS NULL AND doctor.total_interacoes > 0
      AND state.last_inbound_at < :silent_since AND coalesce(state.last_outbound_at, state.last_inbound_at) < :silent_since
{fim};

-- read feedback: shifts that an operator confirmed lately, with their doctors, the earliest confirmation first
{inicio}
    SELECT doctor.id, doctor.telefone, doctor.primeiro_nome, vaga.id AS vaga_id, hospital.nome AS hospital, vaga.data, vaga.realizada_em AS ordem,
           CASE {impedimentos}
                WHEN EXISTS (SELECT 1 FROM gatilhos_contatos AS earlier JOIN vagas AS same ON same.id = earlier.vaga_id
                             WHERE earlier.vaga_id = vaga.id OR earlier.cliente_id = doctor.id
                             AND same.hospital_id = vaga.hospital_id AND same.data = vaga.data) THEN 'ja_contatado'
                WHEN EXISTS (SELECT 1 FROM vagas AS other WHERE other.cliente_id = doctor.id AND other.status = 'realizada'
                             AND other.deleted_at IS NULL AND other.realizada_em > :asked_since AND other.id <> vaga.id
                             AND (other.realizada_em < vaga.realizada_em OR other.realizada_em = vaga.realizada_em AND other.id < vaga.id)
                             AND NOT EXISTS (SELECT 1 FROM gatilhos_contatos AS asked WHERE asked.vaga_id = other.id)) THEN 'outro_plantao_antes'
                WHEN state.last_inbound_at > :talking THEN 'conversa_agora'
           END AS impedimento
    FROM vagas AS vaga JOIN clientes AS doctor ON doctor.id = vaga.cliente_id AND doctor.tipo = 'medico' AND doctor.deleted_at IS NULL
    JOIN hospitais AS hospital ON hospital.id = vaga.hospital_id LEFT JOIN doctor_state AS state ON state.cliente_id = doctor.id
    WHERE vaga.status = 'realizada' AND vaga.deleted_at IS NULL AND vaga.realizada_em > :asked_since AND vaga.realizada_em <= :now
{fim};

-- read oferta: vacancies that need a doctor in the next days, the earliest shift first
{inicio}
    SELECT vaga.id, NULL AS telefone, NULL AS primeiro_nome, vaga.id AS vaga_id, NULL AS hospital, vaga.data, vaga.data AS ordem,
           CASE WHEN EXISTS (SELECT 1 FROM hospitais_bloqueados AS block WHERE block.hospital_id = vaga.hospital_id
                             AND block.status = 'bloqueado') THEN 'hospital_bloqueado'
                WHEN vaga.status = 'anunciada' AND EXISTS (
                         SELECT 1 FROM vagas_ofertas AS offer JOIN fila_mensagens AS message ON message.id = offer.mensagem_id
                         WHERE offer.vaga_id = vaga.id AND (message.status IN ('pendente', 'processando', 'enviada')
                                                            OR message.envio_estado IS NOT NULL)) THEN 'ja_anunciada'
           END AS impedimento
    FROM vagas AS vaga
    WHERE vaga.status IN ('aberta', 'anunciada') AND vaga.deleted_at IS NULL AND vaga.data >= :hoje AND vaga.data <= :ate
{fim};
