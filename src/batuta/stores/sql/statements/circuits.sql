-- read circuit: one of them
SELECT circuit_name, state, falhas_consecutivas, tentativas_half_open, reset_ms, last_failure_at, last_success_at, last_error,
       opened_at, wait_until, probe, probe_until
FROM circuits WHERE circuit_name = :name;

-- read all: every one that somebody wrote about
SELECT circuit_name, state, falhas_consecutivas, tentativas_half_open, reset_ms, last_failure_at, last_success_at, last_error,
       opened_at, wait_until, probe, probe_until
FROM circuits ORDER BY circuit_name;

-- write hold: ours until the transaction ends, made if need be
INSERT INTO circuits (circuit_name, state, reset_ms, updated_at) VALUES (:name, 'closed', :reset_ms, :now)
ON CONFLICT (circuit_name) DO UPDATE SET circuit_name = excluded.circuit_name
RETURNING circuit_name, state, falhas_consecutivas, tentativas_half_open, reset_ms, last_failure_at, last_success_at, last_error,
          opened_at, wait_until, probe, probe_until;

-- write save: as it was decided
UPDATE circuits
SET state = :state, falhas_consecutivas = :failures, tentativas_half_open = :half_open_attempts, reset_ms = :reset_ms,
    last_failure_at = :last_failure, last_success_at = :last_success, last_error = :last_error, opened_at = :opened_at,
    wait_until = :wait_until, probe = :probe, probe_until = :probe_until, updated_at = :now
WHERE circuit_name = :name;

-- write note: one transition
INSERT INTO circuit_transitions
    (id, circuit_name, from_state, to_state, reason, falhas_consecutivas, tentativas_half_open, created_at)
VALUES (:id, :name, :before, :after, :reason, :failures, :half_open_attempts, :now);

-- read history: of all of them
SELECT circuit_name, from_state, to_state, reason, falhas_consecutivas, created_at FROM circuit_transitions
WHERE created_at >= :since ORDER BY created_at DESC, id DESC LIMIT :limit;

-- read history_of: of one
SELECT circuit_name, from_state, to_state, reason, falhas_consecutivas, created_at FROM circuit_transitions
WHERE circuit_name = :name AND created_at >= :since ORDER BY created_at DESC, id DESC LIMIT :limit;

-- write prune: transitions that are kept no longer, a bounded number of them
DELETE FROM circuit_transitions
WHERE id IN (SELECT id FROM circuit_transitions WHERE created_at < :before ORDER BY created_at LIMIT :limit);

-- write forget: circuits nobody has written about for as long; without a row one is closed
DELETE FROM circuits WHERE updated_at < :before;
