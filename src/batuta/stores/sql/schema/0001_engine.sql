-- The engine's own tables. TIMESTAMPTZ is integer microseconds (UTC) in SQLite.

-- One row per fire of a job, also the fire that was skipped or missed: never silence.
CREATE TABLE job_executions (
    id              UUID PRIMARY KEY,
    job_name        TEXT NOT NULL,
    categoria       TEXT NOT NULL,
    scheduled_for   TIMESTAMPTZ,
    trigger         TEXT NOT NULL CHECK (trigger IN ('schedule', 'manual', 'catch_up')),
    attempt         INTEGER NOT NULL DEFAULT 1,
    owner           TEXT,
    lease_until     TIMESTAMPTZ,
    started_at      TIMESTAMPTZ NOT NULL,
    finished_at     TIMESTAMPTZ,
    status          TEXT NOT NULL
                    CHECK (status IN ('running', 'success', 'error', 'timeout', 'skipped', 'abandoned', 'missed')),
    duration_ms     INTEGER,
    response_code   INTEGER,
    error           TEXT CHECK (length(error) <= 500),
    items_processed INTEGER,
    reason          TEXT,
    result          JSONB,
    -- The name an older query of the operators uses for started_at.
    executed_at     TIMESTAMPTZ GENERATED ALWAYS AS (started_at) STORED
);
-- A fire happens once: whoever inserts (job, instant) first has it.
CREATE UNIQUE INDEX job_executions_fire ON job_executions (job_name, scheduled_for)
    WHERE scheduled_for IS NOT NULL AND trigger <> 'manual';
CREATE INDEX job_executions_of_job ON job_executions (job_name, started_at DESC);
CREATE INDEX job_executions_by_time ON job_executions (started_at);
CREATE INDEX job_executions_running ON job_executions (lease_until) WHERE status = 'running';

-- One row per boot of a process.
CREATE TABLE worker_heartbeats (
    worker_id         TEXT PRIMARY KEY,
    worker_name       TEXT NOT NULL,
    status            TEXT NOT NULL CHECK (status IN ('online', 'degraded', 'draining', 'stalled', 'offline')),
    last_heartbeat_at TIMESTAMPTZ NOT NULL,
    started_at        TIMESTAMPTZ NOT NULL,
    loops_status      JSONB NOT NULL,
    host              TEXT,
    pid               INTEGER,
    version           TEXT,
    rss_bytes         BIGINT,
    cpu_seconds       REAL
);
CREATE INDEX worker_heartbeats_by_name ON worker_heartbeats (worker_name, last_heartbeat_at DESC);

CREATE TABLE circuit_transitions (
    id                   UUID PRIMARY KEY,
    circuit_name         TEXT NOT NULL,
    from_state           TEXT NOT NULL,
    to_state             TEXT NOT NULL,
    reason               TEXT NOT NULL,
    falhas_consecutivas  INTEGER NOT NULL,
    tentativas_half_open INTEGER NOT NULL,
    created_at           TIMESTAMPTZ NOT NULL
);
CREATE INDEX circuit_transitions_of_circuit ON circuit_transitions (circuit_name, created_at DESC);

-- Switches: value is true or false. A row is what somebody turned; no row is the position at rest.
CREATE TABLE feature_flags (
    key        TEXT PRIMARY KEY,
    value      JSONB NOT NULL,
    reason     TEXT NOT NULL,
    until      TIMESTAMPTZ,
    updated_by TEXT NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE health_incidents (
    id               UUID PRIMARY KEY,
    from_status      TEXT NOT NULL,
    to_status        TEXT NOT NULL,
    from_score       INTEGER,
    to_score         INTEGER,
    trigger_source   TEXT NOT NULL,
    details          JSONB NOT NULL,
    started_at       TIMESTAMPTZ NOT NULL,
    resolved_at      TIMESTAMPTZ,
    duration_seconds INTEGER
);
CREATE INDEX health_incidents_by_time ON health_incidents (started_at DESC);

CREATE TABLE alertas_enviados (
    id         UUID PRIMARY KEY,
    tipo       TEXT NOT NULL,
    severidade TEXT NOT NULL,
    mensagem   TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX alertas_enviados_by_cause ON alertas_enviados (tipo, created_at DESC);

-- Bearer tokens: only the hash of the secret is kept.
CREATE TABLE api_tokens (
    id           TEXT PRIMARY KEY,
    name         TEXT NOT NULL,
    secret_hash  TEXT NOT NULL,
    scopes       JSONB NOT NULL,
    created_by   TEXT NOT NULL,
    created_at   TIMESTAMPTZ NOT NULL,
    revoked_at   TIMESTAMPTZ
);

-- What the job endpoints were asked and answered: a repeated key gets the first answer.
CREATE TABLE job_calls (
    key           TEXT PRIMARY KEY,
    endpoint      TEXT NOT NULL,
    subject       TEXT NOT NULL,
    fingerprint   TEXT NOT NULL,
    started_at    TIMESTAMPTZ NOT NULL,
    lease_until   TIMESTAMPTZ NOT NULL,
    finished_at   TIMESTAMPTZ,
    response_code INTEGER,
    response      JSONB
);
-- One call of a subject at a time, in all processes.
CREATE UNIQUE INDEX job_calls_running ON job_calls (subject) WHERE finished_at IS NULL;
CREATE INDEX job_calls_by_time ON job_calls (started_at);

-- Who did what: every action of a person, and nothing else.
CREATE TABLE audit_log (
    id      UUID PRIMARY KEY,
    at      TIMESTAMPTZ NOT NULL,
    actor   TEXT NOT NULL,
    action  TEXT NOT NULL,
    subject TEXT NOT NULL,
    before  JSONB,
    after   JSONB
);
CREATE INDEX audit_log_by_time ON audit_log (at DESC);

-- Facts about this database itself; the marker says whose it is.
CREATE TABLE app_settings (
    name       TEXT PRIMARY KEY,
    setting    JSONB NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL
);
