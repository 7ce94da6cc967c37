-- write expire on sqlite: release a call whose lease expired, so that it does not block the next call
DELETE FROM job_calls WHERE finished_at IS NULL AND lease_until < coalesce(:now, now()) AND (subject = :subject OR key = :key);

-- write expire on postgres: release a call whose lease expired, so that it does not block the next call
DELETE FROM job_calls
WHERE finished_at IS NULL AND lease_until < coalesce(:now, clock_timestamp()) AND (subject = :subject OR key = :key);

-- write open on sqlite: reserve the key and the subject, or neither
INSERT INTO job_calls (key, endpoint, subject, fingerprint, started_at, lease_until)
VALUES (:key, :endpoint, :subject, :fingerprint, coalesce(:now, now()), coalesce(:now, now()) + :lease)
ON CONFLICT DO NOTHING
RETURNING started_at;

-- write open on postgres: reserve the key and the subject, or neither
INSERT INTO job_calls (key, endpoint, subject, fingerprint, started_at, lease_until)
VALUES (:key, :endpoint, :subject, :fingerprint, coalesce(:now, clock_timestamp()),
        coalesce(:now, clock_timestamp()) + :lease::bigint * INTERVAL '1 microsecond')
ON CONFLICT DO NOTHING
RETURNING started_at;

-- read call: the row of a key
SELECT fingerprint, finished_at, response_code, response FROM job_calls WHERE key = :key;

-- write close on sqlite: store the response for repeated requests, unless another process took the call over
UPDATE job_calls SET finished_at = coalesce(:now, now()), response_code = :response_code, response = :response
WHERE key = :key AND started_at = :opened_at AND finished_at IS NULL;

-- write close on postgres: store the response for repeated requests, unless another process took the call over
UPDATE job_calls SET finished_at = coalesce(:now, clock_timestamp()), response_code = :response_code, response = :response
WHERE key = :key AND started_at = :opened_at AND finished_at IS NULL;

-- write renew on sqlite: extend the lease of a running call
UPDATE job_calls SET lease_until = coalesce(:now, now()) + :lease
WHERE key = :key AND started_at = :opened_at AND finished_at IS NULL;

-- write renew on postgres: extend the lease of a running call
UPDATE job_calls SET lease_until = coalesce(:now, clock_timestamp()) + :lease::bigint * INTERVAL '1 microsecond'
WHERE key = :key AND started_at = :opened_at AND finished_at IS NULL;

-- write forget: delete a call as if it had never been opened
DELETE FROM job_calls WHERE key = :key AND started_at = :opened_at AND finished_at IS NULL;

-- write prune on sqlite: delete a bounded number of old responses
DELETE FROM job_calls
WHERE key IN (SELECT key FROM job_calls WHERE started_at < coalesce(:now, now()) - :keep AND lease_until < coalesce(:now, now()) - :keep
              ORDER BY started_at LIMIT :limit);

-- write prune on postgres: delete a bounded number of old responses
DELETE FROM job_calls
WHERE key IN (SELECT key FROM job_calls
              WHERE started_at < coalesce(:now, statement_timestamp()) - :keep::bigint * INTERVAL '1 microsecond'
                AND lease_until < coalesce(:now, statement_timestamp()) - :keep::bigint * INTERVAL '1 microsecond'
              ORDER BY started_at LIMIT :limit);
