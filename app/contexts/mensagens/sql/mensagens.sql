-- read alone on sqlite: nothing to lock, because SQLite has one write transaction at a time over all processes
SELECT :cliente_id AS cliente_id;

-- read alone on postgres: lock the doctor until the transaction ends, so that later reads see earlier decisions about
-- this doctor
SELECT pg_advisory_xact_lock(hashtextextended(:cliente_id, 7211405565)) IS NULL AS held;

-- read hold_campaign on sqlite: nothing to lock, because SQLite has one write transaction at a time over all processes
SELECT :campanha_id AS campanha_id;

-- read hold_campaign on postgres: lock a campaign's messages that have not ended
SELECT count(*) AS held FROM (
    SELECT id FROM fila_mensagens WHERE campanha_id = :campanha_id AND status IN ('pendente', 'processando') ORDER BY id FOR UPDATE
) AS messages;

-- write cancel_waiting: cancel a doctor's messages that have no lease and no doubt
UPDATE fila_mensagens
SET status = 'cancelada', outcome = :outcome, outcome_reason_code = :reason, outcome_at = :now, erro = :reason, finalizada_em = :now, updated_at = :now
WHERE cliente_id = :cliente_id AND status = 'pendente' AND lease_until IS NULL AND envio_estado IS NULL
RETURNING id, tipo, cliente_id, conversa_id, metadata;

-- write ask_to_stop: mark a doctor's messages in progress; the worker checks the mark before the send, and the mark
-- survives a retry
UPDATE fila_mensagens SET cancelamento_pedido = TRUE
WHERE cliente_id = :cliente_id AND (lease_until IS NOT NULL OR (envio_estado IS NOT NULL AND status IN ('pendente', 'processando')));

-- write cancel_campaign: cancel a campaign's messages that have no lease and no doubt
UPDATE fila_mensagens
SET status = 'cancelada', outcome = 'FAILED_EXPIRED', outcome_reason_code = :reason, outcome_at = :now, finalizada_em = :now, updated_at = :now
WHERE campanha_id = :campanha_id AND status = 'pendente' AND lease_until IS NULL AND envio_estado IS NULL
RETURNING id, tipo, cliente_id, conversa_id, metadata;

-- write ask_campaign_to_stop: mark a campaign's messages in progress; the worker checks the mark before the send, and
-- the mark survives a retry
UPDATE fila_mensagens SET cancelamento_pedido = TRUE
WHERE campanha_id = :campanha_id AND status IN ('pendente', 'processando') AND (lease_until IS NOT NULL OR envio_estado IS NOT NULL);

-- write release_campaign: make the messages of a resumed campaign due; their age counts from now
UPDATE fila_mensagens
SET agendar_para = CASE WHEN substr(erro, 1, length(CAST(:paused AS text))) = :paused THEN :now ELSE agendar_para END, devida_em = :now, updated_at = :now
WHERE campanha_id = :campanha_id AND status = 'pendente' AND lease_until IS NULL AND envio_estado IS NULL;

-- write cancel_held: cancel Julia's messages to a doctor that have no lease and no doubt
UPDATE fila_mensagens
SET status = 'cancelada', outcome = 'FAILED_EXPIRED', outcome_reason_code = :reason, outcome_at = :now, erro = :reason,
    finalizada_em = :now, updated_at = :now
WHERE cliente_id = :cliente_id AND status = 'pendente' AND lease_until IS NULL AND envio_estado IS NULL
  AND tipo NOT IN ('manual', 'sistema')
RETURNING id, tipo, cliente_id, conversa_id, metadata;

-- write ask_held_to_stop: mark Julia's messages in progress to a doctor; the worker checks the mark before the send,
-- and the mark survives a retry
UPDATE fila_mensagens SET cancelamento_pedido = TRUE
WHERE cliente_id = :cliente_id AND status IN ('pendente', 'processando') AND (lease_until IS NOT NULL OR envio_estado IS NOT NULL)
  AND tipo NOT IN ('manual', 'sistema');

-- write release_held: make the messages due that waited for the person; their age counts from now
UPDATE fila_mensagens
SET agendar_para = CASE WHEN substr(erro, 1, length(CAST(:held AS text))) = :held THEN :now ELSE agendar_para END,
    devida_em = CASE WHEN devida_em > :now THEN devida_em ELSE :now END, updated_at = :now
WHERE cliente_id = :cliente_id AND status = 'pendente' AND lease_until IS NULL AND envio_estado IS NULL
  AND tipo NOT IN ('manual', 'sistema');

-- read wake on sqlite: do nothing, because other processes poll the file for writes
SELECT 1 AS woken;

-- read wake on postgres: notify the workers that wait for this queue
SELECT pg_notify('batuta', 'fila_mensagens') IS NULL AS woken;
