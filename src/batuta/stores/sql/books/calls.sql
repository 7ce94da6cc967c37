-- write bury: calls whose process died are out of the way of this one
DELETE FROM job_calls WHERE finished_at IS NULL AND lease_until < :now AND (subject = :subject OR key = :key);

-- write open: take the key and the subject, or nothing
INSERT INTO job_calls (key, endpoint, subject, fingerprint, started_at, lease_until)
VALUES (:key, :endpoint, :subject, :fingerprint, :now, :lease_until)
ON CONFLICT DO NOTHING
RETURNING key;

-- read call: what is known under a key
SELECT fingerprint, finished_at, response_code, response FROM job_calls WHERE key = :key;

-- write close: the answer, kept for whoever asks again; whoever lost the call meanwhile writes nothing
UPDATE job_calls SET finished_at = :now, response_code = :response_code, response = :response
WHERE key = :key AND started_at = :opened_at AND finished_at IS NULL;

-- write renew: whoever runs it is alive
UPDATE job_calls SET lease_until = :lease_until WHERE key = :key AND started_at = :opened_at AND finished_at IS NULL;

-- write forget: as if it had never been opened
DELETE FROM job_calls WHERE key = :key AND started_at = :opened_at AND finished_at IS NULL;

-- write prune: old answers, a bounded number of them
DELETE FROM job_calls
WHERE key IN (SELECT key FROM job_calls WHERE started_at < :before AND lease_until < :before ORDER BY started_at LIMIT :limit);
