-- read alone on sqlite: nothing to lock, because SQLite has one write transaction at a time over all processes
SELECT :gatilho AS gatilho;

-- read alone on postgres: lock a trigger until the transaction ends, so that two runs select different doctors
SELECT pg_advisory_xact_lock(hashtextextended(:gatilho, 7211405566)) IS NULL AS held;

-- write contact: record a queued message of a trigger
INSERT INTO gatilhos_contatos (mensagem_id, gatilho, cliente_id, vaga_id, created_at)
VALUES (:mensagem_id, :gatilho, :cliente_id, :vaga_id, :now);

-- write sent: record that the message was sent
UPDATE gatilhos_contatos SET enviada_em = :em WHERE mensagem_id = :mensagem_id;

-- write ended: record that the message will not be sent
UPDATE gatilhos_contatos SET encerrada_em = :em WHERE mensagem_id = :mensagem_id AND enviada_em IS NULL;

-- read asked: the message of a trigger that the doctor answers: the last message of Julia, without a clear answer yet
SELECT contact.mensagem_id, contact.gatilho FROM gatilhos_contatos AS contact
WHERE contact.cliente_id = :cliente_id AND contact.enviada_em > :since
  AND (contact.respondida_em IS NULL OR contact.avaliacao = 'indefinida')
  AND NOT EXISTS (SELECT 1 FROM fila_mensagens AS later WHERE later.cliente_id = contact.cliente_id AND later.id <> contact.mensagem_id
                  AND (later.enviada_em > contact.enviada_em OR later.envio_estado IS NOT NULL)
                  AND later.tipo NOT IN ('resposta', 'recebimento', 'retomada', 'sistema'))
ORDER BY contact.enviada_em DESC LIMIT 1;

-- write answered: store the class of the answer
UPDATE gatilhos_contatos
SET respondida_em = :em, classe = :classe, avaliacao = :avaliacao, nota = :nota
WHERE mensagem_id = :mensagem_id;

-- write learn: store the speciality of a doctor, if none is stored
UPDATE clientes SET especialidade = :especialidade WHERE id = :cliente_id AND coalesce(especialidade, '') = '';

-- read doctor: the first name of a doctor
SELECT primeiro_nome FROM clientes WHERE id = :cliente_id;

-- read messages: messages of each trigger since an instant, and those still queued
SELECT metadata ->> 'gatilho' AS chave, count(CASE WHEN created_at > :since THEN 1 END) AS enfileiradas,
       count(CASE WHEN status = 'enviada' AND enviada_em > :since THEN 1 END) AS enviados,
       count(CASE WHEN status IN ('pendente', 'processando') THEN 1 END) AS na_fila
FROM fila_mensagens
WHERE metadata ->> 'gatilho' IS NOT NULL AND (created_at > :since OR enviada_em > :since OR status IN ('pendente', 'processando'))
GROUP BY metadata ->> 'gatilho';

-- read answers: answers to messages of the triggers since an instant, by class of the feedback
SELECT gatilho, avaliacao, count(*) AS quantas FROM gatilhos_contatos WHERE respondida_em > :since GROUP BY gatilho, avaliacao;

-- read held: queued messages that wait because a switch holds their trigger
SELECT count(*) AS items, min(created_at) AS "desde [TIMESTAMPTZ]" FROM fila_mensagens
WHERE status = 'pendente' AND substr(erro, 1, length(CAST(:held AS text))) = :held;
