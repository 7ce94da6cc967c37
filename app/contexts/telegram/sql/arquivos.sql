-- write store: store the file of a queued message
INSERT INTO telegram_arquivos (mensagem_id, cliente_id, nome, mime, conteudo, created_at)
VALUES (:mensagem_id, :cliente_id, :nome, :mime, :conteudo, :now);

-- read read: the file of a message
SELECT nome, mime, conteudo FROM telegram_arquivos WHERE mensagem_id = :mensagem_id;

-- write remove: delete the file of a message that was sent
DELETE FROM telegram_arquivos WHERE mensagem_id = :mensagem_id;
