-- read campaign: one campaign
SELECT * FROM campanhas WHERE id = :id;

-- read campaigns: campaigns, newest first, with one status or with any
SELECT * FROM campanhas WHERE status = coalesce(:status, status) AND id < :before ORDER BY id DESC LIMIT :limit;

-- write create: insert a campaign as a draft
INSERT INTO campanhas (nome_template, tipo_campanha, corpo, audience_filters, pode_ofertar, objetivo, created_by, created_at, updated_at)
VALUES (:nome, :tipo, :corpo, :filtros, :pode_ofertar, :objetivo, :by, :now, :now) RETURNING id;

-- write change: apply an operator's action, if the campaign still has the expected status
UPDATE campanhas
SET status = :after, agendar_para = coalesce(:agendar_para, agendar_para), erro = NULL, updated_at = :now
WHERE id = :id AND status = :before;

-- read recipients: counts of recipients by situation and reason
SELECT situacao, motivo, count(*) AS quantos FROM campanha_destinatarios WHERE campanha_id = :id GROUP BY situacao, motivo;

-- read messages: counts of the campaign's messages by status, outcome and the reason why they wait or were not sent
SELECT status, outcome, CASE WHEN status = 'pendente' THEN coalesce(:held, erro) ELSE outcome_reason_code END AS motivo, count(*) AS quantas
FROM fila_mensagens WHERE campanha_id = :id GROUP BY status, outcome, CASE WHEN status = 'pendente' THEN coalesce(:held, erro) ELSE outcome_reason_code END;

-- read doubts: count of the campaign's messages in doubt
SELECT count(*) AS quantas FROM fila_mensagens WHERE campanha_id = :id AND envio_estado IS NOT NULL;

-- read people: recipients in order, with the state of the message of each
SELECT someone.posicao, someone.cliente_id, someone.situacao, someone.motivo, message.status, message.outcome,
       CASE WHEN message.status = 'pendente' THEN coalesce(:held, message.erro) ELSE message.outcome_reason_code END AS porque
FROM campanha_destinatarios AS someone LEFT JOIN fila_mensagens AS message ON message.id = someone.fila_mensagem_id
WHERE someone.campanha_id = :id AND someone.posicao > :after AND someone.situacao = coalesce(:situacao, someone.situacao)
  AND coalesce(someone.motivo, '') = coalesce(:motivo, someone.motivo, '')
ORDER BY someone.posicao LIMIT :limit;

-- read person: the situation of a doctor, named by number or id, in a campaign
SELECT person.id AS cliente_id, someone.situacao, someone.motivo, message.status, message.outcome,
       CASE WHEN message.status = 'pendente' THEN coalesce(:held, message.erro) ELSE message.outcome_reason_code END AS porque
FROM clientes AS person
LEFT JOIN campanha_destinatarios AS someone ON someone.cliente_id = person.id AND someone.campanha_id = :id
LEFT JOIN fila_mensagens AS message ON message.id = someone.fila_mensagem_id
WHERE (person.telefone_chave = :chave OR CAST(person.id AS TEXT) = :quem) AND person.deleted_at IS NULL;
