-- read circuit: one circuit
SELECT circuit_name, state, falhas_consecutivas, tentativas_half_open, reset_ms, last_failure_at, last_success_at, last_error,
       opened_at, wait_until, probe, probe_until
FROM circuits WHERE circuit_name = :name;

-- read all: every circuit that has a row
SELECT circuit_name, state, falhas_consecutivas, tentativas_half_open, reset_ms, last_failure_at, last_success_at, last_error,
       opened_at, wait_until, probe, probe_until
FROM circuits ORDER BY circuit_name;

-- write hold: lock the row of a circuit until the transaction ends; create it if it is missing
INSERT INTO circuits (circuit_name, state, reset_ms, updated_at) VALUES (:name, 'closed', :reset_ms, :now)
ON CONFLICT (circuit_name) DO UPDATE SET circuit_name = excluded.circuit_name
RETURNING circuit_name, state, falhas_consecutivas, tentativas_half_open, reset_ms, last_failure_at, last_success_at, last_error,
          opened_at, wait_until, probe, probe_until;

-- write save: store the decided state
UPDATE circuits
SET state = :state, falhas_consecutivas = :failures, tentativas_half_open = :half_open_attempts, reset_ms = :reset_ms,
    last_failure_at = :last_failure, last_success_at = :last_success, last_error = :last_error, opened_at = :opened_at,
    wait_until = :wait_until, probe = :probe, probe_until = :probe_until, updated_at = :now
WHERE circuit_name = :name;

-- write note: record a transition
INSERT INTO circuit_transitions
    (id, circuit_name, from_state, to_state, reason, falhas_consecutivas, tentativas_half_open, created_at)
VALUES (:id, :name, :before, :after, :reason, :failures, :half_open_attempts, :now);

-- read history: transitions of all circuits
SELECT circuit_name, from_state, to_state, reason, falhas_consecutivas, created_at FROM circuit_transitions
WHERE created_at >= :since ORDER BY created_at DESC, id DESC LIMIT :limit;

-- read history_of: transitions of one circuit
SELECT circuit_name, from_state, to_state, reason, falhas_consecutivas, created_at FROM circuit_transitions
WHERE circuit_name = :name AND created_at >= :since ORDER BY created_at DESC, id DESC LIMIT :limit;

-- write prune: delete a bounded number of transitions whose retention has ended
DELETE FROM circuit_transitions
WHERE id IN (SELECT id FROM circuit_transitions WHERE created_at < :before ORDER BY created_at LIMIT :limit);

-- write forget: delete circuits without a recent change; a circuit without a row is closed
DELETE FROM circuits WHERE updated_at < :before;
