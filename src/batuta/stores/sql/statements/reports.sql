-- read known_since: the instant since which this database is expected to run jobs
SELECT setting AS since FROM app_settings WHERE name = 'jobs_expected_since';

-- write expect: record the instant at which a process first served this database
INSERT INTO app_settings (name, setting, updated_at) VALUES ('jobs_expected_since', :since, :now) ON CONFLICT DO NOTHING;

-- read schedules: the instant since which runs of each job are expected
SELECT job_name, expected_since, accounted_until, active FROM job_schedules;

-- read last_runs: the newest row of each job
SELECT run.job_name, run.id, run.scheduled_for, run.started_at, run.finished_at, run.status, run.trigger, run.duration_ms, run.response_code,
       run.error, run.reason, run.items_processed
FROM job_schedules AS schedule
JOIN job_executions AS run ON run.id = (
    SELECT id FROM job_executions WHERE job_name = schedule.job_name ORDER BY started_at DESC, id DESC LIMIT 1);

-- read last_errors: the newest failure of each job
SELECT run.job_name, run.started_at, run.status, run.error
FROM job_schedules AS schedule
JOIN job_executions AS run ON run.id = (
    SELECT id FROM job_executions WHERE job_name = schedule.job_name AND status = 'error'
    ORDER BY started_at DESC LIMIT 1);

-- read failures: the number of failed runs of each job since its last success, up to a limit
SELECT schedule.job_name, (
    SELECT count(*) FROM (
        SELECT 1 FROM job_executions AS run
        WHERE run.job_name = schedule.job_name AND run.status IN ('error', 'timeout', 'abandoned')
          AND run.started_at > coalesce((
              SELECT max(good.started_at) FROM job_executions AS good
              WHERE good.job_name = schedule.job_name AND good.status = 'success'), schedule.expected_since)
        LIMIT :enough) AS failed) AS failures
FROM job_schedules AS schedule WHERE schedule.active;

-- read counts on sqlite: runs and total duration of each job by status
SELECT job_name, status, count(*) AS runs, sum(duration_ms) AS total_ms, sum(items_processed) AS items
FROM job_executions INDEXED BY job_executions_by_time WHERE started_at >= :since GROUP BY job_name, status;

-- read counts on postgres: runs and total duration of each job by status
-- The upper bound is for the planner, which expects a third of the table for a range with only one bound.
SELECT job_name, status, count(*) AS runs, sum(duration_ms) AS total_ms, sum(items_processed) AS items
FROM job_executions WHERE started_at >= :since AND started_at < 'infinity' GROUP BY job_name, status;

-- read slow on sqlite: the 95th percentile of run durations
SELECT job_name, duration_ms FROM (
    SELECT job_name, duration_ms,
           row_number() OVER (PARTITION BY job_name ORDER BY duration_ms) AS place,
           count(*) OVER (PARTITION BY job_name) AS runs
    FROM job_executions INDEXED BY job_executions_by_time
    WHERE started_at >= :since AND status IN ('success', 'error', 'timeout')
) AS ranked
WHERE place = (runs * 95 + 99) / 100;

-- read slow on postgres: the 95th percentile of run durations
SELECT job_name, duration_ms FROM (
    SELECT job_name, duration_ms,
           row_number() OVER (PARTITION BY job_name ORDER BY duration_ms) AS place,
           count(*) OVER (PARTITION BY job_name) AS runs
    FROM job_executions
    WHERE started_at >= :since AND started_at < 'infinity' AND status IN ('success', 'error', 'timeout')
) AS ranked
WHERE place = (runs * 95 + 99) / 100;

-- read answered on sqlite: jobs that succeeded, or were skipped for an accepted reason, at or after the instant expected
-- A reason with a code is stored as one JSON text (kernel/reasons.py).
SELECT key AS job_name FROM json_each(:expected) WHERE EXISTS (
    SELECT 1 FROM job_executions AS run
    WHERE run.job_name = key AND run.started_at >= value AND run.started_at <= :now
      AND (run.status = 'success' OR (run.status = 'skipped' AND coalesce(
          CASE WHEN json_valid(run.reason) THEN run.reason ->> 'code' END, '')
          NOT IN ('overlap', 'overlap_busy', 'overlap_threads', 'unfinished'))));

-- read answered on postgres: jobs that succeeded, or were skipped for an accepted reason, at or after the instant expected
-- A reason with a code is stored as one JSON text that begins with the code (kernel/reasons.py).
SELECT expected.key AS job_name FROM jsonb_each_text(:expected) AS expected WHERE EXISTS (
    SELECT 1 FROM job_executions AS run
    WHERE run.job_name = expected.key
      AND run.started_at >= TIMESTAMPTZ 'epoch' + expected.value::bigint * INTERVAL '1 microsecond'
      AND run.started_at <= :now
      AND (run.status = 'success' OR (run.status = 'skipped' AND NOT (
          run.reason LIKE '{"code":"%' AND split_part(run.reason, '"', 4)
          IN ('overlap', 'overlap_busy', 'overlap_threads', 'unfinished')))));

-- read activity on sqlite: rows by status, category and time slice; a missed fire counts at the instant it was due
SELECT categoria, status, slice, count(*) AS runs FROM (
    SELECT categoria, status,
           (CASE status WHEN 'missed' THEN scheduled_for ELSE started_at END - :since) / :length AS slice,
           CASE status WHEN 'missed' THEN scheduled_for ELSE started_at END >= :since AS is_inside
    FROM job_executions WHERE started_at >= :since
) AS sliced
WHERE is_inside GROUP BY categoria, status, slice;

-- read activity on postgres: rows by status, category and time slice; a missed fire counts at the instant it was due
SELECT categoria, status, slice, count(*) AS runs FROM (
    SELECT categoria, status,
           floor(date_part('epoch', CASE status WHEN 'missed' THEN scheduled_for ELSE started_at END - :since::timestamptz)
                 * 1000000 / :length::bigint)::integer AS slice
    FROM job_executions WHERE started_at >= :since AND started_at < 'infinity'
) AS sliced
WHERE slice >= 0 GROUP BY categoria, status, slice;

-- read running on sqlite: runs in progress
SELECT job_name, count(*) AS runs FROM job_executions INDEXED BY job_executions_running
WHERE status = 'running' AND lease_until > :now GROUP BY job_name;

-- read running on postgres: runs in progress
SELECT job_name, count(*) AS runs FROM job_executions WHERE status = 'running' AND lease_until > :now GROUP BY job_name;

-- read recent: the newest rows before an instant
SELECT id, job_name, categoria, scheduled_for, trigger, attempt, owner, started_at, finished_at, status, duration_ms,
       response_code, error, items_processed, reason, result
FROM job_executions
WHERE started_at <= :before AND (started_at < :before OR id < :before_id)
ORDER BY started_at DESC, id DESC LIMIT :limit;

-- read recent_of_job: the newest rows of one job
SELECT id, job_name, categoria, scheduled_for, trigger, attempt, owner, started_at, finished_at, status, duration_ms,
       response_code, error, items_processed, reason, result
FROM job_executions
WHERE job_name = :job AND started_at <= :before AND (started_at < :before OR id < :before_id)
ORDER BY started_at DESC, id DESC LIMIT :limit;

-- read recent_in_status: the newest rows with one status
SELECT id, job_name, categoria, scheduled_for, trigger, attempt, owner, started_at, finished_at, status, duration_ms,
       response_code, error, items_processed, reason, result
FROM job_executions
WHERE status = :status AND started_at <= :before AND (started_at < :before OR id < :before_id)
ORDER BY started_at DESC, id DESC LIMIT :limit;

-- read recent_of_job_in_status: the newest rows of one job with one status
SELECT id, job_name, categoria, scheduled_for, trigger, attempt, owner, started_at, finished_at, status, duration_ms,
       response_code, error, items_processed, reason, result
FROM job_executions
WHERE job_name = :job AND status = :status AND started_at <= :before AND (started_at < :before OR id < :before_id)
ORDER BY started_at DESC, id DESC LIMIT :limit;

-- read execution: one run
SELECT id, job_name, categoria, scheduled_for, trigger, attempt, owner, started_at, finished_at, status, duration_ms,
       response_code, error, items_processed, reason, result
FROM job_executions WHERE id = :id;
