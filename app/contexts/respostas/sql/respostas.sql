-- read doctor: the name, the number and the opt-out of a doctor
SELECT primeiro_nome, telefone, deleted_at, opt_out OR opted_out AS "parou [BOOLEAN]" FROM clientes WHERE id = :cliente_id;

-- read last: the vacancy of the last message that was sent to the doctor, or may have been, and is not an answer
SELECT offer.vaga_id FROM fila_mensagens AS message LEFT JOIN vagas_ofertas AS offer ON offer.mensagem_id = message.id
WHERE message.cliente_id = :cliente_id AND (message.status = 'enviada' OR message.envio_estado IS NOT NULL)
  AND message.tipo NOT IN ('resposta', 'recebimento', 'retomada', 'sistema')
ORDER BY coalesce(message.enviada_em, message.envio_desde) DESC, message.id DESC LIMIT 1;

-- read vacancies: the vacancies of sent offers that need a doctor, those reserved for the doctor or to be confirmed, and
-- the one with an id
SELECT vaga.id, vaga.status, vaga.origem, vaga.cliente_id, vaga.data, vaga.hora_inicio, vaga.hora_fim, vaga.periodo_id, vaga.valor,
       vaga.valor_tipo, hospital.nome AS hospital, hospital.cidade, hospital.estado AS uf, especialidade.nome AS especialidade,
       periodo.nome AS periodo,
       EXISTS (SELECT 1 FROM hospitais_bloqueados AS block WHERE block.hospital_id = vaga.hospital_id AND block.status = 'bloqueado')
           AS "bloqueado [BOOLEAN]",
       EXISTS (SELECT 1 FROM vagas_ofertas AS offer JOIN fila_mensagens AS message ON message.id = offer.mensagem_id
               WHERE offer.vaga_id = vaga.id AND offer.cliente_id = :cliente_id
                 AND (message.status = 'enviada' OR message.envio_estado IS NOT NULL)) AS "oferecida [BOOLEAN]",
       vaga.id IN (SELECT vaga_id FROM external_handoffs WHERE cliente_id = :cliente_id AND status IN ('pending', 'contacted'))
           AS "a_confirmar [BOOLEAN]"
FROM vagas AS vaga JOIN hospitais AS hospital ON hospital.id = vaga.hospital_id
JOIN especialidades AS especialidade ON especialidade.id = vaga.especialidade_id LEFT JOIN periodos AS periodo ON periodo.id = vaga.periodo_id
WHERE vaga.deleted_at IS NULL
  AND (vaga.id = :vaga_id
       OR vaga.id IN (SELECT vaga_id FROM external_handoffs WHERE cliente_id = :cliente_id AND status IN ('pending', 'contacted'))
       OR vaga.cliente_id = :cliente_id AND vaga.status = 'reservada' AND vaga.data >= :hoje
       OR vaga.status IN ('aberta', 'anunciada') AND vaga.data >= :hoje
          AND vaga.id IN (SELECT vaga_id FROM vagas_ofertas WHERE cliente_id = :cliente_id))
ORDER BY vaga.data, vaga.hora_inicio, vaga.id;

-- write keep: record a message that came outside the sending hours, once
INSERT INTO mensagens_fora_horario (id, cliente_id, conversa_id, inbound_message_id, classe, recebida_em, processada_em,
                                    processada_resultado, created_at)
VALUES (:id, :cliente_id, :conversa_id, :message_id, :classe, :em, :processada_em, :resultado, :now)
ON CONFLICT DO NOTHING;

-- read acknowledged: whether the conversation was acknowledged since an instant
SELECT 1 AS there FROM mensagens_fora_horario WHERE conversa_id = :conversa_id AND recebimento_em > :since LIMIT 1;

-- write acknowledge: store the acknowledgement of a message
UPDATE mensagens_fora_horario SET recebimento_id = :id, recebimento_em = :now, recebimento_modelo = :qual
WHERE inbound_message_id = :message_id;

-- write unacknowledge: forget an acknowledgement that was not sent, so that the next message may be acknowledged
UPDATE mensagens_fora_horario SET recebimento_em = NULL WHERE recebimento_id = :id;

-- read waiting: conversations with messages to answer in the morning, the oldest message first
SELECT conversa_id, cliente_id, min(recebida_em) AS "desde [TIMESTAMPTZ]", count(*) AS mensagens FROM mensagens_fora_horario
WHERE processada_em IS NULL AND retomada_id IS NULL GROUP BY conversa_id, cliente_id ORDER BY min(recebida_em), conversa_id;

-- read night: messages of one conversation to answer in the morning, oldest first, with their texts
SELECT night.id, night.inbound_message_id, night.recebida_em, said.conteudo,
       EXISTS (SELECT 1 FROM conversations AS talk WHERE talk.cliente_id = night.cliente_id AND talk.controlled_by = 'human'
               AND talk.status IN ('active', 'paused', 'escalated')) AS "com_pessoa [BOOLEAN]"
FROM mensagens_fora_horario AS night
LEFT JOIN interacoes AS said ON said.provider_message_id = night.inbound_message_id AND said.tipo = 'entrada'
WHERE night.conversa_id = :conversa_id AND night.processada_em IS NULL AND night.retomada_id IS NULL
ORDER BY night.recebida_em, night.id;

-- write resume: store the queued answer of the messages of one conversation
UPDATE mensagens_fora_horario SET retomada_id = :retomada_id
WHERE conversa_id = :conversa_id AND processada_em IS NULL AND retomada_id IS NULL AND recebida_em <= :until;

-- write close: mark the messages of one conversation as processed, because they need no answer from Julia
UPDATE mensagens_fora_horario SET processada_em = :now, processada_resultado = :resultado
WHERE conversa_id = :conversa_id AND processada_em IS NULL AND retomada_id IS NULL;

-- write settle: mark messages as processed, because their answer was sent or will not be sent
UPDATE mensagens_fora_horario SET processada_em = :now, processada_resultado = :resultado WHERE retomada_id = :retomada_id;
