-- write announce on sqlite: insert a timetable that is not recorded yet, as the newest deployment
INSERT INTO job_timetables
    (fingerprint, position, jobs, release_name, first_seen_at, renewals, renewed_at, renewed_by, activation)
SELECT :fingerprint, coalesce(max(position), 0) + 1, :jobs, :release, coalesce(:now, now()), 0, coalesce(:now, now()), :owner, 0
FROM job_timetables WHERE TRUE
ON CONFLICT (fingerprint) DO NOTHING;

-- write announce on postgres: insert a timetable that is not recorded yet, as the newest deployment
INSERT INTO job_timetables
    (fingerprint, position, jobs, release_name, first_seen_at, renewals, renewed_at, renewed_by, activation)
SELECT :fingerprint, coalesce(max(position), 0) + 1, :jobs, :release, coalesce(:now, clock_timestamp()), 0,
       coalesce(:now, clock_timestamp()), :owner, 0
FROM job_timetables
ON CONFLICT (fingerprint) DO NOTHING;

-- write renew on sqlite: record that a scheduler of this timetable is alive
UPDATE job_timetables SET renewals = renewals + 1, renewed_at = coalesce(:now, now()), renewed_by = :owner
WHERE fingerprint = :fingerprint;

-- write renew on postgres: record that a scheduler of this timetable is alive; skip a row that another scheduler is renewing
UPDATE job_timetables SET renewals = renewals + 1, renewed_at = coalesce(:now, clock_timestamp()), renewed_by = :owner
WHERE fingerprint IN (SELECT fingerprint FROM job_timetables WHERE fingerprint = :fingerprint FOR UPDATE SKIP LOCKED);

-- write forget: delete all but the newest timetables and the active one
DELETE FROM job_timetables
WHERE position <= (SELECT max(position) FROM job_timetables) - :kept AND activation < (SELECT max(activation) FROM job_timetables);

-- read rivals: this timetable, all newer timetables, and the active timetable
SELECT fingerprint, position, jobs, release_name, first_seen_at, renewals, renewed_at, renewed_by, activation,
       activation > 0 AND activation = (SELECT max(activation) FROM job_timetables) AS "is_active [BOOLEAN]"
FROM job_timetables
WHERE position >= (SELECT own.position FROM job_timetables AS own WHERE own.fingerprint = :fingerprint)
   OR activation = (SELECT max(activation) FROM job_timetables);

-- read newest: the timetables deployed last, and the active timetable
SELECT fingerprint, position, jobs, release_name, first_seen_at, renewals, renewed_at, renewed_by, activation,
       activation > 0 AND activation = (SELECT max(activation) FROM job_timetables) AS "is_active [BOOLEAN]"
FROM job_timetables
WHERE position > (SELECT max(position) FROM job_timetables) - :limit
   OR activation = (SELECT max(activation) FROM job_timetables)
ORDER BY position DESC;

-- read active: the timetable whose schedules fire
SELECT fingerprint FROM job_timetables WHERE activation > 0 ORDER BY activation DESC LIMIT 1;

-- write hold on sqlite: read all timetables; no lock is needed, because SQLite has one write transaction at a time
SELECT fingerprint, position FROM job_timetables ORDER BY position;

-- write hold on postgres: lock all timetables, so that one scheduler activates or registers at a time
SELECT fingerprint, position FROM job_timetables ORDER BY position, fingerprint FOR UPDATE;

-- write activate: make a timetable active, so that its schedules fire from now on
UPDATE job_timetables SET activation = (SELECT max(activation) + 1 FROM job_timetables) WHERE fingerprint = :fingerprint;
