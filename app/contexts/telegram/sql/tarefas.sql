-- write progress: store the progress of a back-fill
UPDATE telegram_historico SET cursor = :cursor, lidas = lidas + :lidas, novas = novas + :novas WHERE id = :id AND fence = :fence;

-- read backfills: the latest back-fills
SELECT task.id, task.conta_id, account.nome AS conta, task.destino, task.cursor, task.lidas, task.novas, task.maximo, task.status,
       task.erro, task.created_at, task.finished_at
FROM telegram_historico AS task JOIN telegram_contas AS account ON account.id = task.conta_id ORDER BY task.created_at DESC LIMIT :limit;

-- read sent: one message on Telegram
SELECT message.id, message.status, message.envio_estado, message.tentativas, message.agendar_para, message.enviada_em, message.outcome,
       message.outcome_reason_code, message.erro, message.provider_message_id, message.created_at, account.nome AS conta, message.metadata
FROM fila_mensagens AS message JOIN telegram_contas AS account ON account.id = message.conta_id WHERE message.id = :id;

-- read doctor: a doctor by phone number, with or without the ninth digit, or by id
SELECT id, telefone FROM clientes WHERE (telefone_chave = :chave OR CAST(id AS TEXT) = :quem) AND deleted_at IS NULL;

-- read action: one action
SELECT task.id, account.nome AS conta, task.acao, task.chat, task.mensagem, task.mensagem_id, task.pedida_por, task.status, task.erro,
       task.created_at, task.finished_at
FROM telegram_acoes AS task JOIN telegram_contas AS account ON account.id = task.conta_id WHERE task.id = :id;

-- read actions: the latest actions
SELECT task.id, account.nome AS conta, task.acao, task.chat, task.mensagem, task.mensagem_id, task.pedida_por, task.status, task.erro,
       task.created_at, task.finished_at
FROM telegram_acoes AS task JOIN telegram_contas AS account ON account.id = task.conta_id ORDER BY task.created_at DESC LIMIT :limit;

-- write forwarded: store the queued message of a forward
UPDATE telegram_acoes SET mensagem_id = :mensagem_id WHERE id = :id;
