-- read open: the open incident of a source
SELECT id, from_status, to_status, from_score, to_score, trigger_source, details, started_at, resolved_at, duration_seconds
FROM health_incidents WHERE trigger_source = :source AND resolved_at IS NULL;

-- write begin: insert an incident
INSERT INTO health_incidents
    (id, from_status, to_status, from_score, to_score, trigger_source, details, started_at, resolved_at, duration_seconds)
VALUES (:id, :from_status, :to_status, :from_score, :to_score, :source, :details, :started_at, :resolved_at, :duration_seconds);

-- write grow: store the details that were found since the incident opened
UPDATE health_incidents SET details = :details WHERE id = :id AND resolved_at IS NULL;

-- write close on sqlite: close an incident
UPDATE health_incidents SET resolved_at = :now, duration_seconds = max(0, (:now - started_at) / 1000000)
WHERE id = :id AND resolved_at IS NULL;

-- write close on postgres: close an incident
UPDATE health_incidents
SET resolved_at = :now::timestamptz, duration_seconds = greatest(0, floor(extract(epoch FROM :now::timestamptz - started_at)))::integer
WHERE id = :id AND resolved_at IS NULL;

-- read within: incidents that were open at any time of a period, newest first
SELECT id, from_status, to_status, from_score, to_score, trigger_source, details, started_at, resolved_at, duration_seconds
FROM health_incidents
WHERE started_at <= :until AND (resolved_at IS NULL OR resolved_at >= :since)
ORDER BY started_at DESC, id DESC LIMIT :limit;

-- read one: one incident by id
SELECT id, from_status, to_status, from_score, to_score, trigger_source, details, started_at, resolved_at, duration_seconds
FROM health_incidents WHERE id = :id;
