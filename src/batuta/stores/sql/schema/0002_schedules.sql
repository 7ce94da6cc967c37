-- How each job is scheduled, and how far its fires are decided. Whoever decides about a job holds its row.
CREATE TABLE job_schedules (
    job_name        TEXT PRIMARY KEY,
    categoria       TEXT NOT NULL,
    schedule        TEXT NOT NULL,
    timezone        TEXT NOT NULL,
    active          BOOLEAN NOT NULL,
    -- Runs are expected from here on: when it was first seen, or its schedule last changed.
    expected_since  TIMESTAMPTZ NOT NULL,
    -- Every fire up to here is a row in job_executions.
    accounted_until TIMESTAMPTZ NOT NULL
);

-- What a person added to a run by hand.
ALTER TABLE job_executions ADD COLUMN params JSONB;

-- What health asks: the last run of a job that ended in a certain way.
CREATE INDEX job_executions_by_ending ON job_executions (job_name, status, started_at DESC);

-- What people list: the newest rows that ended in one way.
CREATE INDEX job_executions_in_status ON job_executions (status, started_at DESC);

-- What a day's figures are counted from: nothing but this index is read for them.
DROP INDEX job_executions_by_time;
CREATE INDEX job_executions_by_time ON job_executions (started_at, job_name, status, duration_ms, items_processed);
