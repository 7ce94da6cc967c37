-- read alive: the task that has a key
SELECT id FROM tasks WHERE unique_key = :key AND status IN ('queued', 'in_progress');

-- read task: one of them
SELECT id, queue, name, status, created_at, started_at, finished_at, attempts, result, error, progress, expires_at
FROM tasks WHERE id = :id;

-- write report: how far it has come; whoever lost it writes nothing
UPDATE tasks SET progress = :progress WHERE id = :id AND fence = :fence AND lease_until IS NOT NULL;

-- write prune: results that are kept no longer, a bounded number of them
DELETE FROM tasks WHERE id IN (SELECT id FROM tasks WHERE expires_at <= :before AND finished_at IS NOT NULL ORDER BY expires_at LIMIT :limit);
