-- write add: store a message once; :status is processada for messages of the history
INSERT INTO telegram_entrada (id, chave, conta_id, chat, chat_nome, mensagem, propria, quem, autor_nome, autor_telefone, texto, midia,
                              resposta_a, encaminhada, em, editada_em, origem, status, available_at, created_at, finished_at)
VALUES (:id, :chave, :conta_id, :chat, :chat_nome, :mensagem, :propria, :quem, :autor_nome, :autor_telefone, :texto, :midia,
        :resposta_a, :encaminhada, :em, :editada_em, :origem, :status, :now, :now, :finished_at)
ON CONFLICT DO NOTHING;

-- write process: process a message that a back-fill stored
UPDATE telegram_entrada SET origem = 'atualizacao', status = 'pendente', available_at = :now, finished_at = NULL
WHERE chave = :chave AND origem = 'historico' AND status = 'processada';

-- write edit: store the new text of an edited message
UPDATE telegram_entrada SET texto = :texto, editada_em = :editada_em
WHERE chave = :chave AND (editada_em IS NULL OR editada_em < :editada_em);

-- write delete: mark deleted messages
UPDATE telegram_entrada SET apagada_em = :now
WHERE conta_id = :conta_id AND mensagem = :mensagem AND apagada_em IS NULL
  AND (chat = :chat OR CAST(:chat AS TEXT) IS NULL AND chat NOT LIKE 'canal:%');

-- read read_by_other: own messages of a chat up to an id, without the news that they were read
SELECT entry.chave FROM telegram_entrada AS entry
WHERE entry.conta_id = :conta_id AND entry.chat = :chat AND entry.propria AND entry.mensagem <= :ate AND entry.mensagem > :ate - 100
ORDER BY entry.mensagem DESC LIMIT 100;

-- read wake on sqlite: do nothing, because other processes poll the file for writes
SELECT 1 AS woken;

-- read wake on postgres: notify the workers that wait for this queue
SELECT pg_notify('batuta', 'telegram_entrada') IS NULL AS woken;
