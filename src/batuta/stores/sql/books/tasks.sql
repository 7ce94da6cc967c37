-- read alive: the task that has a key
SELECT id FROM tasks WHERE unique_key = :key AND status IN ('queued', 'in_progress');

-- read task: one of them
SELECT id, queue, name, status, created_at, started_at, finished_at, attempts, result, error, progress, expires_at
FROM tasks WHERE id = :id;

-- write report: how far it has come; whoever lost it writes nothing
UPDATE tasks SET progress = :progress WHERE id = :id AND fence = :fence AND lease_until IS NOT NULL;

-- write report_of_call: the progress of a call that ARQ runs; the lease may have passed to another relay meanwhile
UPDATE tasks SET progress = :progress WHERE id = :id AND finished_at IS NULL;

-- read wanted on sqlite: which of these are still to be run
SELECT id FROM tasks WHERE id IN (SELECT value FROM json_each(:ids)) AND status IN ('queued', 'in_progress') AND NOT cancel_requested;

-- read wanted on postgres: which of these are still to be run
SELECT id FROM tasks WHERE id IN (SELECT jsonb_array_elements_text(:ids)::uuid)
  AND status IN ('queued', 'in_progress') AND NOT cancel_requested;

-- write prune: results that are kept no longer, a bounded number of them
DELETE FROM tasks WHERE id IN (SELECT id FROM tasks WHERE expires_at <= :before AND finished_at IS NOT NULL ORDER BY expires_at LIMIT :limit);
