-- read switch: the stored value of a switch
SELECT key, value, reason, until, updated_by, updated_at FROM feature_flags WHERE key = :key;

-- read all: every switch with a stored value
SELECT key, value, reason, until, updated_by, updated_at FROM feature_flags ORDER BY key;

-- write set: store the value of a switch
INSERT INTO feature_flags (key, value, reason, until, updated_by, updated_at)
VALUES (:key, :value, :reason, :until, :by, :now)
ON CONFLICT (key) DO UPDATE
SET value = excluded.value, reason = excluded.reason, until = excluded.until,
    updated_by = excluded.updated_by, updated_at = excluded.updated_at;
