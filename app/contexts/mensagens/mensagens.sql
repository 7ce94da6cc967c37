-- write cancel_waiting: what nobody works on and nobody doubts
UPDATE fila_mensagens
SET status = 'cancelada', outcome = :outcome, outcome_reason_code = :reason, outcome_at = :now, finalizada_em = :now, updated_at = :now
WHERE cliente_id = :cliente_id AND status = 'pendente' AND lease_until IS NULL AND envio_estado IS NULL;

-- write ask_to_stop: what somebody works on: he asks again before the message leaves, and it does not come back
UPDATE fila_mensagens SET cancelamento_pedido = TRUE
WHERE cliente_id = :cliente_id AND (lease_until IS NOT NULL OR (envio_estado IS NOT NULL AND status IN ('pendente', 'processando')));
