-- read open: the incident of a source that is not over
SELECT id, from_status, to_status, from_score, to_score, trigger_source, details, started_at, resolved_at, duration_seconds
FROM health_incidents WHERE trigger_source = :source AND resolved_at IS NULL;

-- write begin: a new one
INSERT INTO health_incidents
    (id, from_status, to_status, from_score, to_score, trigger_source, details, started_at, resolved_at, duration_seconds)
VALUES (:id, :from_status, :to_status, :from_score, :to_score, :source, :details, :started_at, :resolved_at, :duration_seconds);

-- write grow: more has been found since
UPDATE health_incidents SET details = :details WHERE id = :id AND resolved_at IS NULL;

-- write close on sqlite: it is over
UPDATE health_incidents SET resolved_at = :now, duration_seconds = max(0, (:now - started_at) / 1000000)
WHERE id = :id AND resolved_at IS NULL;

-- write close on postgres: it is over
UPDATE health_incidents
SET resolved_at = :now::timestamptz, duration_seconds = greatest(0, floor(extract(epoch FROM :now::timestamptz - started_at)))::integer
WHERE id = :id AND resolved_at IS NULL;

-- read within: every one that was open at some time of a span, newest first
SELECT id, from_status, to_status, from_score, to_score, trigger_source, details, started_at, resolved_at, duration_seconds
FROM health_incidents
WHERE started_at <= :until AND (resolved_at IS NULL OR resolved_at >= :since)
ORDER BY started_at DESC, id DESC LIMIT :limit;

-- read one: by its id
SELECT id, from_status, to_status, from_score, to_score, trigger_source, details, started_at, resolved_at, duration_seconds
FROM health_incidents WHERE id = :id;
