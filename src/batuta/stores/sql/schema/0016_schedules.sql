-- Schedules that are created at run time: each fire enqueues a task. The executions of a schedule have its name.
CREATE TABLE schedules (
    name           TEXT PRIMARY KEY,
    schedule       TEXT NOT NULL,
    timezone       TEXT NOT NULL,
    task           TEXT NOT NULL,
    args           JSONB NOT NULL,
    jitter_seconds DOUBLE PRECISION NOT NULL DEFAULT 0,
    overlap        TEXT NOT NULL,
    catch_up       TEXT NOT NULL,
    paused         BOOLEAN NOT NULL DEFAULT FALSE,
    -- Every fire up to this instant is decided.
    decided_until  TIMESTAMPTZ NOT NULL,
    -- When a scheduler looks at it next; NULL: paused, or its only fire has passed.
    next_at        TIMESTAMPTZ,
    last_task      UUID,
    created_by     TEXT NOT NULL,
    created_at     TIMESTAMPTZ NOT NULL,
    updated_at     TIMESTAMPTZ NOT NULL
);
CREATE INDEX schedules_due ON schedules (next_at) WHERE next_at IS NOT NULL;
