-- read listed: every schedule by name
SELECT * FROM schedules ORDER BY name;

-- read named: one schedule
SELECT * FROM schedules WHERE name = :name;

-- write held on sqlite: one schedule, to be changed
SELECT * FROM schedules WHERE name = :name;

-- write held on postgres: lock one schedule, to be changed
SELECT * FROM schedules WHERE name = :name FOR UPDATE;

-- write create: insert a schedule, unless its name is taken
INSERT INTO schedules (name, schedule, timezone, task, args, jitter_seconds, overlap, catch_up, paused, decided_until, next_at,
                       created_by, created_at, updated_at)
VALUES (:name, :schedule, :timezone, :task, :args, :jitter, :overlap, :catch_up, FALSE, :now, :next_at, :by, :now, :now)
ON CONFLICT DO NOTHING;

-- write edit: change a schedule; its fires up to now count as decided
UPDATE schedules SET schedule = :schedule, timezone = :timezone, task = :task, args = :args, jitter_seconds = :jitter,
    overlap = :overlap, catch_up = :catch_up, paused = :paused, decided_until = :now, next_at = :next_at, updated_at = :now
WHERE name = :name;

-- write delete: delete a schedule; its executions stay
DELETE FROM schedules WHERE name = :name;

-- write prune: delete a bounded number of schedules with one instant that has passed; their executions stay
DELETE FROM schedules WHERE name IN (
    SELECT name FROM schedules WHERE next_at IS NULL AND NOT paused AND schedule LIKE '@at %' AND decided_until < :before LIMIT :limit);

-- write due on sqlite: schedules with a due fire
SELECT * FROM schedules INDEXED BY schedules_due WHERE next_at IS NOT NULL AND next_at <= :now ORDER BY next_at LIMIT :limit;

-- write due on postgres: lock schedules with a due fire; skip those that another scheduler has locked
SELECT * FROM schedules WHERE next_at <= :now ORDER BY next_at LIMIT :limit FOR UPDATE SKIP LOCKED;

-- read next: the earliest instant at which a schedule is due
SELECT min(next_at) AS "at [TIMESTAMPTZ]" FROM schedules WHERE next_at IS NOT NULL;

-- write decide: record how far the fires of a schedule are decided
UPDATE schedules SET decided_until = :until, next_at = :next_at, last_task = :task WHERE name = :name;

-- write record: insert the row of a fire, unless the fire has a row
INSERT INTO job_executions (id, job_name, categoria, scheduled_for, trigger, started_at, finished_at, status, reason, error, result, duration_ms)
VALUES (:id, :name, 'schedules', :fire, :trigger, :now, :now, :status, :reason, :error, :result, 0)
ON CONFLICT (job_name, scheduled_for) WHERE scheduled_for IS NOT NULL AND trigger <> 'manual' DO NOTHING;

-- write repeat: insert the row of a fire, or replace one that says that the fire did not run
INSERT INTO job_executions (id, job_name, categoria, scheduled_for, trigger, started_at, finished_at, status, reason, error, result, duration_ms)
VALUES (:id, :name, 'schedules', :fire, :trigger, :now, :now, :status, :reason, :error, :result, 0)
ON CONFLICT (job_name, scheduled_for) WHERE scheduled_for IS NOT NULL AND trigger <> 'manual' DO UPDATE
SET id = excluded.id, trigger = excluded.trigger, started_at = excluded.started_at, finished_at = excluded.finished_at,
    status = excluded.status, reason = excluded.reason, error = excluded.error, result = excluded.result
WHERE job_executions.status IN ('missed', 'skipped', 'error');

-- write link: store the task of a fire
UPDATE job_executions SET result = :result WHERE id = :id;

-- write fail: store why the task of a fire was not enqueued
UPDATE job_executions SET status = 'error', error = :error WHERE id = :id;

-- read is_alive: whether this task waits or runs
SELECT 1 AS found FROM tasks WHERE id = :id AND status IN ('queued', 'in_progress');
