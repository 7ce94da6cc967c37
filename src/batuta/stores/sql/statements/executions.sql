-- read schedules: the registered schedules
SELECT job_name, categoria, schedule, timezone, active, expected_since, accounted_until FROM job_schedules;

-- write register: register a job that is new, returned or changed; its earlier fires are not due
INSERT INTO job_schedules (job_name, categoria, schedule, timezone, active, expected_since, accounted_until)
VALUES (:job, :category, :schedule, :zone, TRUE, :since, :since)
ON CONFLICT (job_name) DO UPDATE
SET categoria = excluded.categoria, schedule = excluded.schedule, timezone = excluded.timezone, active = TRUE,
    expected_since = excluded.expected_since, accounted_until = excluded.accounted_until;

-- write silence: deactivate a job that is no longer in any timetable
UPDATE job_schedules SET active = FALSE WHERE job_name = :job;

-- write known: insert a row to lock for a job that no scheduler has registered
INSERT INTO job_schedules (job_name, categoria, schedule, timezone, active, expected_since, accounted_until)
VALUES (:job, :category, :schedule, :zone, FALSE, :now, :now)
ON CONFLICT DO NOTHING;

-- write hold on sqlite: read these jobs; no lock is needed, because SQLite has one write transaction at a time
SELECT job_name, active, accounted_until FROM job_schedules WHERE job_name IN (SELECT value FROM json_each(:jobs));

-- write hold on postgres: lock these jobs until the transaction ends; skip jobs that another process has locked
SELECT job_name, active, accounted_until FROM job_schedules
WHERE job_name IN (SELECT jsonb_array_elements_text(:jobs)) ORDER BY job_name FOR UPDATE SKIP LOCKED;

-- write hold_firmly on sqlite: read these jobs, like hold
SELECT job_name, active, accounted_until FROM job_schedules WHERE job_name IN (SELECT value FROM json_each(:jobs));

-- write hold_firmly on postgres: lock these jobs like hold, but wait for locked rows
SELECT job_name, active, accounted_until FROM job_schedules
WHERE job_name IN (SELECT jsonb_array_elements_text(:jobs)) ORDER BY job_name FOR UPDATE;

-- read running on sqlite: the given jobs that are running
SELECT DISTINCT job_name FROM job_executions INDEXED BY job_executions_running
WHERE status = 'running' AND lease_until IS NOT NULL AND job_name IN (SELECT value FROM json_each(:jobs));

-- read running on postgres: the given jobs that are running
SELECT DISTINCT job_name FROM job_executions
WHERE status = 'running' AND lease_until IS NOT NULL AND job_name IN (SELECT jsonb_array_elements_text(:jobs));

-- write open on sqlite: insert one row per decision; skip a fire that has a row
-- Exception: a clock that was ahead recorded the fire as missed; that row is replaced.
INSERT INTO job_executions
    (id, job_name, categoria, scheduled_for, trigger, owner, lease_until, started_at, finished_at, status, reason, result,
     params, duration_ms)
SELECT value ->> 'id', value ->> 'job', value ->> 'category', value ->> 'scheduled_for', value ->> 'trigger',
       CASE value ->> 'status' WHEN 'running' THEN :owner END,
       CASE value ->> 'status' WHEN 'running' THEN :lease_until END,
       :now,
       CASE value ->> 'status' WHEN 'running' THEN NULL ELSE :now END,
       value ->> 'status', value ->> 'reason', nullif(value -> 'covers', 'null'),
       nullif(value -> 'params', 'null'),
       CASE value ->> 'status' WHEN 'running' THEN NULL ELSE 0 END
FROM json_each(:rows)
WHERE TRUE
ON CONFLICT (job_name, scheduled_for) WHERE scheduled_for IS NOT NULL AND trigger <> 'manual' DO UPDATE
SET id = excluded.id, categoria = excluded.categoria, trigger = excluded.trigger, owner = excluded.owner,
    lease_until = excluded.lease_until, started_at = excluded.started_at, finished_at = excluded.finished_at,
    status = excluded.status, reason = excluded.reason, result = excluded.result, duration_ms = excluded.duration_ms
WHERE job_executions.status = 'missed' AND job_executions.started_at > excluded.started_at
RETURNING id;

-- write open on postgres: insert one row per decision; skip a fire that has a row
-- Exception: a clock that was ahead recorded the fire as missed; that row is replaced.
INSERT INTO job_executions
    (id, job_name, categoria, scheduled_for, trigger, owner, lease_until, started_at, finished_at, status, reason, result,
     params, duration_ms)
SELECT id, job, category, TIMESTAMPTZ 'epoch' + scheduled_for * INTERVAL '1 microsecond', trigger,
       CASE status WHEN 'running' THEN :owner::text END,
       CASE status WHEN 'running' THEN :lease_until::timestamptz END,
       :now,
       CASE status WHEN 'running' THEN NULL ELSE :now::timestamptz END,
       status, reason, covers, params,
       CASE status WHEN 'running' THEN NULL ELSE 0 END
FROM jsonb_to_recordset(:rows) AS row
    (id uuid, job text, category text, scheduled_for bigint, trigger text, status text, reason text, covers jsonb, params jsonb)
ON CONFLICT (job_name, scheduled_for) WHERE scheduled_for IS NOT NULL AND trigger <> 'manual' DO UPDATE
SET id = excluded.id, categoria = excluded.categoria, trigger = excluded.trigger, owner = excluded.owner,
    lease_until = excluded.lease_until, started_at = excluded.started_at, finished_at = excluded.finished_at,
    status = excluded.status, reason = excluded.reason, result = excluded.result, duration_ms = excluded.duration_ms
WHERE job_executions.status = 'missed' AND job_executions.started_at > excluded.started_at
RETURNING id;

-- write account on sqlite: record the instant up to which the fires of these jobs are decided
UPDATE job_schedules SET accounted_until = decided.value
FROM json_each(:accounted) AS decided WHERE job_schedules.job_name = decided.key;

-- write account on postgres: record the instant up to which the fires of these jobs are decided
UPDATE job_schedules AS schedule
SET accounted_until = TIMESTAMPTZ 'epoch' + decided.value::bigint * INTERVAL '1 microsecond'
FROM jsonb_each_text(:accounted) AS decided
WHERE schedule.job_name = decided.key;

-- write renew on sqlite: extend the leases of this owner; runs that are not returned were taken over
UPDATE job_executions SET lease_until = coalesce(:now, now()) + :lease
FROM json_each(:held) AS held
WHERE job_executions.id = held.key AND job_executions.attempt = held.value AND owner = :owner AND status = 'running'
RETURNING id, TRUE AS "is_renewed [BOOLEAN]";

-- write renew on postgres: extend the leases of this owner; runs that are not returned were taken over
-- A row that another transaction has locked is returned, but not renewed.
WITH held AS (
    SELECT run.id FROM jsonb_each_text(:held) AS mine
    JOIN job_executions AS run ON run.id = mine.key::uuid AND run.attempt = mine.value::integer
    WHERE run.owner = :owner AND run.status = 'running'
), unlocked AS (
    SELECT id FROM job_executions
    WHERE id IN (SELECT id FROM held) AND owner = :owner AND status = 'running' FOR UPDATE SKIP LOCKED
), renewed AS (
    UPDATE job_executions AS run
    SET lease_until = coalesce(:now, clock_timestamp()) + :lease::bigint * INTERVAL '1 microsecond'
    FROM unlocked WHERE run.id = unlocked.id RETURNING run.id
)
SELECT held.id, renewed.id IS NOT NULL AS "is_renewed [BOOLEAN]" FROM held LEFT JOIN renewed ON renewed.id = held.id;

-- write close on sqlite: write the end of a run, unless another scheduler took it over
UPDATE job_executions
SET status = :status, finished_at = coalesce(:now, now()),
    duration_ms = min(max(0, (coalesce(:now, now()) - started_at) / 1000), 2147483647),
    response_code = :response_code, error = :error, reason = :reason, items_processed = :items, result = :result,
    lease_until = NULL
WHERE id = :id AND attempt = :attempt AND status = 'running'
RETURNING TRUE AS "is_closed [BOOLEAN]";

-- write close on postgres: write the end of a run, unless another scheduler took it over
-- A row that another transaction has locked is skipped.
WITH unlocked AS (
    SELECT id FROM job_executions WHERE id = :id AND attempt = :attempt AND status = 'running' FOR UPDATE SKIP LOCKED
), closed AS (
    UPDATE job_executions AS run
    SET status = :status, finished_at = coalesce(:now, clock_timestamp()),
        duration_ms = least(greatest(0, floor(extract(epoch FROM coalesce(:now, clock_timestamp()) - started_at) * 1000)), 2147483647),
        response_code = :response_code, error = :error, reason = :reason, items_processed = :items, result = :result,
        lease_until = NULL
    FROM unlocked WHERE run.id = unlocked.id RETURNING run.id
)
SELECT EXISTS (SELECT 1 FROM closed) AS "is_closed [BOOLEAN]"
FROM job_executions WHERE id = :id AND attempt = :attempt AND status = 'running';

-- write hand_back on sqlite: remove the owner, so that another scheduler takes the runs over immediately
UPDATE job_executions SET owner = NULL, lease_until = coalesce(:now, now())
WHERE status = 'running' AND owner = :owner AND id IN (SELECT value FROM json_each(:ids));

-- write hand_back on postgres: remove the owner, so that another scheduler takes the runs over immediately
UPDATE job_executions SET owner = NULL, lease_until = coalesce(:now, clock_timestamp())
WHERE id IN (SELECT id FROM job_executions
             WHERE status = 'running' AND owner = :owner AND id IN (SELECT jsonb_array_elements_text(:ids)::uuid)
             FOR UPDATE SKIP LOCKED);

-- write silent on sqlite: runs whose renewal is overdue, or whose lease is longer than any valid lease
-- Declared as a write, so that it waits for the write lock as a renewal does: then a locked file delays this check too.
SELECT id, job_name, attempt, owner, lease_until, coalesce(:now, now()) AS "now [TIMESTAMPTZ]" FROM job_executions
WHERE status = 'running'
  AND (lease_until <= coalesce(:now, now()) + :within OR lease_until > coalesce(:now, now()) + :longest
       OR owner IN (SELECT value FROM json_each(:owners)))
  AND (job_name IN (SELECT value FROM json_each(:known)) OR lease_until <= coalesce(:now, now()) - :long_silence)
ORDER BY lease_until LIMIT :limit;

-- write silent on postgres: runs whose renewal is overdue, or whose lease is longer than any valid lease
-- A row that another transaction has locked is omitted, because its owner cannot renew it.
SELECT id, job_name, attempt, owner, lease_until, coalesce(:now, statement_timestamp()) AS now FROM job_executions
WHERE status = 'running'
  AND (lease_until <= coalesce(:now, statement_timestamp()) + :within::bigint * INTERVAL '1 microsecond'
       OR lease_until > coalesce(:now, statement_timestamp()) + :longest::bigint * INTERVAL '1 microsecond'
       OR owner IN (SELECT jsonb_array_elements_text(:owners)))
  AND (job_name IN (SELECT jsonb_array_elements_text(:known))
       OR lease_until <= coalesce(:now, statement_timestamp()) - :long_silence::bigint * INTERVAL '1 microsecond')
ORDER BY lease_until LIMIT :limit FOR SHARE SKIP LOCKED;

-- write take_over on sqlite: take over these runs, unless they changed since they were read
UPDATE job_executions SET attempt = attempt + 1, owner = :owner, lease_until = coalesce(:now, now()) + :lease
FROM json_each(:runs) AS taken
WHERE job_executions.id = taken.value ->> 'id' AND job_executions.status = 'running'
  AND job_executions.attempt = taken.value ->> 'attempt' AND job_executions.lease_until = taken.value ->> 'lease_until'
RETURNING id, job_name, categoria, scheduled_for, trigger, attempt, started_at, params;

-- write take_over on postgres: take over these runs, unless they changed since they were read
WITH taken AS (
    SELECT run.id FROM jsonb_to_recordset(:runs) AS seen (id uuid, attempt integer, lease_until bigint)
    JOIN job_executions AS run ON run.id = seen.id AND run.attempt = seen.attempt
        AND run.lease_until = TIMESTAMPTZ 'epoch' + seen.lease_until * INTERVAL '1 microsecond'
    WHERE run.status = 'running' FOR UPDATE OF run SKIP LOCKED
)
UPDATE job_executions AS run
SET attempt = attempt + 1, owner = :owner,
    lease_until = coalesce(:now, clock_timestamp()) + :lease::bigint * INTERVAL '1 microsecond'
FROM taken WHERE run.id = taken.id
RETURNING run.id, job_name, categoria, scheduled_for, trigger, attempt, started_at, params;

-- write end_replaced on sqlite: end the current runs of these jobs, because a later fire replaces them
UPDATE job_executions
SET status = 'abandoned', reason = :reason, finished_at = :now, lease_until = NULL,
    duration_ms = min(max(0, (:now - started_at) / 1000), 2147483647)
WHERE status = 'running' AND job_name IN (SELECT value FROM json_each(:jobs)) RETURNING id;

-- write end_replaced on postgres: end the current runs of these jobs, because a later fire replaces them
UPDATE job_executions
SET status = 'abandoned', reason = :reason, finished_at = :now, lease_until = NULL,
    duration_ms = least(greatest(0, floor(extract(epoch FROM :now::timestamptz - started_at) * 1000)), 2147483647)
WHERE status = 'running' AND job_name IN (SELECT jsonb_array_elements_text(:jobs)) RETURNING id;

-- write expire on sqlite: end a manual run that was not renewed for twice its lease, so that it does not block the next run
UPDATE job_executions SET status = 'abandoned', reason = :reason, finished_at = coalesce(:now, now()), lease_until = NULL
WHERE job_name = :job AND status = 'running' AND trigger = 'manual' AND lease_until <= coalesce(:now, now()) - :lease;

-- write expire on postgres: end a manual run that was not renewed for twice its lease, so that it does not block the next run
UPDATE job_executions SET status = 'abandoned', reason = :reason, finished_at = coalesce(:now, clock_timestamp()), lease_until = NULL
WHERE id IN (SELECT id FROM job_executions
             WHERE job_name = :job AND status = 'running' AND trigger = 'manual'
               AND lease_until <= coalesce(:now, clock_timestamp()) - :lease::bigint * INTERVAL '1 microsecond'
             FOR UPDATE SKIP LOCKED);

-- write prune: delete a bounded number of old rows; keep the newest row of each job and status
DELETE FROM job_executions WHERE id IN (
    SELECT old.id FROM job_executions AS old
    WHERE old.started_at < :before AND old.status <> 'running' AND EXISTS (
        SELECT 1 FROM job_executions AS newer
        WHERE newer.job_name = old.job_name AND newer.status = old.status AND newer.started_at > old.started_at)
    ORDER BY old.started_at LIMIT :limit);
