-- read fact: a fact about this database
SELECT setting FROM app_settings WHERE name = :name;

-- write settle: record a fact, unless it is there
INSERT INTO app_settings (name, setting, updated_at) VALUES (:name, :setting, :now) ON CONFLICT DO NOTHING;

-- write record: record a fact, or replace it
INSERT INTO app_settings (name, setting, updated_at) VALUES (:name, :setting, :now)
ON CONFLICT (name) DO UPDATE SET setting = excluded.setting, updated_at = excluded.updated_at;

-- read alive: processes that showed a sign of life lately and did not end in order
SELECT count(*) AS processes FROM worker_heartbeats WHERE status <> 'offline' AND last_heartbeat_at > :since;

-- read executions: runs that the backup may not know, or knows as running
SELECT id, job_name, categoria, scheduled_for, trigger, attempt, started_at, finished_at, status, duration_ms, response_code,
       error, items_processed, reason, result, params
FROM job_executions WHERE started_at >= :since;

-- write forget_executions: they come from the replaced database
DELETE FROM job_executions WHERE started_at >= :since;

-- write abandon: no process runs these any more
UPDATE job_executions SET status = 'abandoned', reason = :reason, finished_at = :now, lease_until = NULL, owner = NULL
WHERE status = 'running';

-- read schedules: how far the fires of each job are decided
SELECT job_name, categoria, active, accounted_until FROM job_schedules;

-- write account: fires up to here are decided
UPDATE job_schedules SET accounted_until = :until WHERE job_name = :job AND accounted_until < :until;

-- write skip: one row for all fires of a job between the backup and its restore
INSERT INTO job_executions (id, job_name, categoria, scheduled_for, trigger, started_at, finished_at, status, duration_ms, reason, result)
VALUES (:id, :job, :category, :now, 'catch_up', :now, :now, 'missed', 0, :reason, :span);

-- read switches: their stored positions
SELECT key, value, reason, until, updated_by, updated_at FROM feature_flags;

-- write forget_switches: they come from the replaced database
DELETE FROM feature_flags;

-- read settings: what people set at run time, and earlier restores
SELECT name, setting, updated_at FROM app_settings WHERE name IN ('schedule_profile', 'windows', 'restores');

-- read tokens: of the API
SELECT id, name, secret_hash, scopes, created_by, created_at, revoked_at FROM api_tokens;

-- read rates: what is used up of the rate limits
SELECT reservation, rate_key, counts_at, confirmed, kept_until FROM rate_tokens WHERE kept_until > :since;

-- read audit: what people did
SELECT id, at, actor, action, subject, before, after FROM audit_log WHERE at >= :since;

-- read tasks: those that ended
SELECT id, status, attempts, error, result, started_at, finished_at, expires_at FROM tasks
WHERE status IN ('complete', 'failed', 'cancelled') AND finished_at >= :since;

-- write end_task: it ended after the backup was taken
UPDATE tasks
SET status = :status, attempts = :attempts, error = :error, result = :result, started_at = :started_at, finished_at = :finished_at,
    expires_at = :expires_at, lease_until = NULL, owner = NULL
WHERE id = :id AND status IN ('queued', 'in_progress');

-- write forget_beats: these processes are not there
DELETE FROM worker_heartbeats;

-- write forget_leases: nor do they hold anything
DELETE FROM leases;
