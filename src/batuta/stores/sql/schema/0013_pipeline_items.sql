-- Items of the pipelines that are declared in code (work.pipeline). ``stage`` is pipeline.stage while the item waits or runs, then its end.
CREATE TABLE pipeline_items (
    id           UUID PRIMARY KEY,
    pipeline     TEXT NOT NULL,
    stage        TEXT NOT NULL,
    last_stage   TEXT,
    item         JSONB NOT NULL,
    unique_key   TEXT,
    priority     INTEGER NOT NULL DEFAULT 0,
    attempts     INTEGER NOT NULL DEFAULT 0,
    crashes      INTEGER NOT NULL DEFAULT 0,
    fence        BIGINT NOT NULL DEFAULT 0,
    available_at TIMESTAMPTZ NOT NULL,
    lease_until  TIMESTAMPTZ,
    owner        TEXT,
    error        TEXT CHECK (length(error) <= 500),
    created_at   TIMESTAMPTZ NOT NULL,
    finished_at  TIMESTAMPTZ,
    expires_at   TIMESTAMPTZ
);
-- The stages are names in code, so the condition of the index cannot list them.
CREATE INDEX pipeline_items_ready ON pipeline_items (stage, priority, available_at, id) WHERE lease_until IS NULL;
CREATE INDEX pipeline_items_due ON pipeline_items (stage, available_at) WHERE lease_until IS NULL;
CREATE INDEX pipeline_items_leased ON pipeline_items (lease_until) WHERE lease_until IS NOT NULL;
CREATE UNIQUE INDEX pipeline_items_alive ON pipeline_items (pipeline, unique_key) WHERE unique_key IS NOT NULL AND finished_at IS NULL;
CREATE INDEX pipeline_items_dead ON pipeline_items (last_stage, finished_at) WHERE stage = 'dead';
CREATE INDEX pipeline_items_expiring ON pipeline_items (expires_at) WHERE expires_at IS NOT NULL;
