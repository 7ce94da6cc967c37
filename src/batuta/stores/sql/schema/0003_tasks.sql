-- Functions to be run, once accepted until they ended: the engine's own queue.
CREATE TABLE tasks (
    id               UUID PRIMARY KEY,
    queue            TEXT NOT NULL,
    name             TEXT NOT NULL,
    args             JSONB NOT NULL,
    unique_key       TEXT,
    priority         INTEGER NOT NULL DEFAULT 0,
    status           TEXT NOT NULL DEFAULT 'queued'
                     CHECK (status IN ('queued', 'in_progress', 'complete', 'failed', 'cancelled')),
    attempts         INTEGER NOT NULL DEFAULT 0,
    crashes          INTEGER NOT NULL DEFAULT 0,
    fence            BIGINT NOT NULL DEFAULT 0,
    available_at     TIMESTAMPTZ NOT NULL,
    lease_until      TIMESTAMPTZ,
    owner            TEXT,
    error            TEXT CHECK (length(error) <= 500),
    result           JSONB,
    progress         JSONB,
    cancel_requested BOOLEAN NOT NULL DEFAULT FALSE,
    created_at       TIMESTAMPTZ NOT NULL,
    started_at       TIMESTAMPTZ,
    finished_at      TIMESTAMPTZ,
    expires_at       TIMESTAMPTZ
);
CREATE INDEX tasks_ready ON tasks (queue, priority, available_at, id) WHERE status = 'queued' AND lease_until IS NULL;
CREATE INDEX tasks_leased ON tasks (lease_until) WHERE lease_until IS NOT NULL;
-- While one is alive, a second of the same key is not taken.
CREATE UNIQUE INDEX tasks_alive ON tasks (unique_key) WHERE status IN ('queued', 'in_progress');
CREATE INDEX tasks_dead ON tasks (queue, finished_at) WHERE status = 'failed';
CREATE INDEX tasks_expiring ON tasks (expires_at) WHERE expires_at IS NOT NULL;
