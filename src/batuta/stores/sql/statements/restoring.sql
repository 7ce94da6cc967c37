-- read fact: a fact about this database
SELECT setting FROM app_settings WHERE name = :name;

-- write settle: record a fact about this database, unless it is already recorded
INSERT INTO app_settings (name, setting, updated_at) VALUES (:name, :setting, :now) ON CONFLICT DO NOTHING;

-- write record: record a fact about this database, or replace it
INSERT INTO app_settings (name, setting, updated_at) VALUES (:name, :setting, :now)
ON CONFLICT (name) DO UPDATE SET setting = excluded.setting, updated_at = excluded.updated_at;

-- read alive: processes with a recent heartbeat that did not end normally
SELECT count(*) AS processes FROM worker_heartbeats WHERE status <> 'offline' AND last_heartbeat_at > :since;

-- read executions: runs that the backup may lack, or may contain as running
SELECT id, job_name, categoria, scheduled_for, trigger, attempt, started_at, finished_at, status, duration_ms, response_code,
       error, items_processed, reason, result, params
FROM job_executions WHERE started_at >= :since;

-- write forget_executions: delete runs for which the replaced database provides later rows
DELETE FROM job_executions WHERE started_at >= :since;

-- write abandon: mark the running runs of the backup as abandoned, because no process runs them
UPDATE job_executions SET status = 'abandoned', reason = :reason, finished_at = :now, lease_until = NULL, owner = NULL
WHERE status = 'running';

-- read schedules: the instant up to which the fires of each job are decided
SELECT job_name, categoria, active, accounted_until FROM job_schedules;

-- write account: record the fires up to an instant as decided
UPDATE job_schedules SET accounted_until = :until WHERE job_name = :job AND accounted_until < :until;

-- write skip: insert one row for all fires of a job between the backup and its restore
INSERT INTO job_executions (id, job_name, categoria, scheduled_for, trigger, started_at, finished_at, status, duration_ms, reason, result)
VALUES (:id, :job, :category, :now, 'catch_up', :now, :now, 'missed', 0, :reason, :span);

-- read switches: the stored values of the switches
SELECT key, value, reason, until, updated_by, updated_at FROM feature_flags;

-- write forget_switches: delete the switches, because the replaced database provides them
DELETE FROM feature_flags;

-- read settings: settings that operators changed at run time, and earlier restores
SELECT name, setting, updated_at FROM app_settings WHERE name IN ('schedule_profile', 'windows', 'restores');

-- read tokens: tokens for the API
SELECT id, name, secret_hash, scopes, created_by, created_at, revoked_at FROM api_tokens;

-- read rates: used tokens of rate limits
SELECT reservation, rate_key, counts_at, confirmed, kept_until FROM rate_tokens WHERE kept_until > :since;

-- read audit: entries of the audit log
SELECT id, at, actor, action, subject, before, after FROM audit_log WHERE at >= :since;

-- read tasks: tasks that ended
SELECT id, status, attempts, error, result, started_at, finished_at, expires_at FROM tasks
WHERE status IN ('complete', 'failed', 'cancelled') AND finished_at >= :since;

-- write end_task: write the end of a task that ended after the backup
UPDATE tasks
SET status = :status, attempts = :attempts, error = :error, result = :result, started_at = :started_at, finished_at = :finished_at,
    expires_at = :expires_at, lease_until = NULL, owner = NULL
WHERE id = :id AND status IN ('queued', 'in_progress');

-- write forget_beats: delete the heartbeats, because their processes no longer run
DELETE FROM worker_heartbeats;

-- write forget_leases: delete the leases of processes that no longer run
DELETE FROM leases;
