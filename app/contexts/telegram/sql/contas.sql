-- read accounts: every account with the numbers of its messages
SELECT account.id, account.nome, account.telefone, account.usuario_id, account.estado, account.marca, account.conectada,
       account.conectada_em, account.respondeu_em, account.atualizada_em, account.erro, account.reconexoes, account.created_at,
       (SELECT count(*) FROM fila_mensagens AS waiting WHERE waiting.conta_id = account.id AND waiting.status = 'pendente'
        AND waiting.envio_estado IS NULL) AS na_fila,
       (SELECT count(*) FROM fila_mensagens AS doubt WHERE doubt.conta_id = account.id AND doubt.envio_estado IN ('intent', 'unknown'))
           AS em_duvida,
       (SELECT count(*) FROM fila_mensagens AS sent WHERE sent.conta_id = account.id AND sent.status = 'enviada'
        AND sent.enviada_em > :hour_ago) AS enviadas_hora,
       (SELECT max(wait.ate) FROM telegram_esperas AS wait WHERE wait.conta_id = account.id AND wait.ate > :now)
           AS "espera_ate [TIMESTAMPTZ]"
FROM telegram_contas AS account WHERE account.estado <> 'removida' ORDER BY account.nome;

-- read active: accounts that the worker keeps connected
SELECT account.id, account.nome, account.marca,
       (SELECT wait.ate FROM telegram_esperas AS wait WHERE wait.conta_id = account.id AND wait.metodo = 'connect')
           AS "connect_after [TIMESTAMPTZ]",
       (SELECT wait.ate FROM telegram_esperas AS wait WHERE wait.conta_id = account.id AND wait.metodo = 'probe')
           AS "probe_after [TIMESTAMPTZ]"
FROM telegram_contas AS account WHERE account.estado = 'ativa' ORDER BY account.id;

-- read account: one account by name or id
SELECT id, nome, estado FROM telegram_contas WHERE (nome = :nome OR id = :nome) AND estado <> 'removida';

-- read state: the state of one account
SELECT estado, nome FROM telegram_contas WHERE id = :id;

-- write retire: remove the account of this name if it belongs to another user; its name becomes free
UPDATE telegram_contas SET estado = 'removida', nome = nome || ' ' || id, conectada = FALSE, updated_at = :now
WHERE nome = :nome AND usuario_id <> :usuario_id
RETURNING id;

-- write delete_session: delete the session of a removed account
DELETE FROM telegram_sessoes WHERE conta_id = :conta_id;

-- write add: add an account, or activate the account of this name again
INSERT INTO telegram_contas (id, nome, telefone, usuario_id, estado, created_at, updated_at)
VALUES (:id, :nome, :telefone, :usuario_id, 'ativa', :now, :now)
ON CONFLICT (nome) DO UPDATE SET telefone = coalesce(excluded.telefone, telegram_contas.telefone),
    usuario_id = coalesce(excluded.usuario_id, telegram_contas.usuario_id), estado = 'ativa', erro = NULL, updated_at = excluded.updated_at;

-- write change: change the state of an account
UPDATE telegram_contas SET estado = :estado, erro = :erro, conectada = FALSE, updated_at = :now
WHERE id = :id AND estado <> :estado AND estado <> 'removida';

-- write connected: record a connection
UPDATE telegram_contas SET conectada = TRUE, conectada_em = :now, respondeu_em = :now, erro = NULL, updated_at = :now WHERE id = :id;

-- write answered: record an answer of the server
UPDATE telegram_contas SET respondeu_em = :now, usuario_id = coalesce(:usuario_id, usuario_id), updated_at = :now WHERE id = :id;

-- write lost: record the end of a connection
UPDATE telegram_contas SET conectada = FALSE, erro = :erro, reconexoes = reconexoes + 1, updated_at = :now WHERE id = :id;

-- write advance: record the position after the stored updates
UPDATE telegram_contas SET marca = :marca, respondeu_em = :now, atualizada_em = CASE WHEN :is_news THEN :now ELSE atualizada_em END,
    updated_at = :now WHERE id = :id;

-- write wait: record that an account may not call a method until an instant
INSERT INTO telegram_esperas (conta_id, metodo, ate, motivo, updated_at) VALUES (:conta_id, :metodo, :ate, :motivo, :now)
ON CONFLICT (conta_id, metodo) DO UPDATE SET ate = excluded.ate, motivo = excluded.motivo, updated_at = excluded.updated_at
WHERE excluded.ate > telegram_esperas.ate;

-- read waiting: until when an account may not call a method
SELECT ate, motivo FROM telegram_esperas WHERE conta_id = :conta_id AND metodo = :metodo AND ate > :now;
