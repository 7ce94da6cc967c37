-- Who decides, of several that could: one at a time, for as long as its lease.
CREATE TABLE leases (
    name        TEXT PRIMARY KEY,
    owner       TEXT NOT NULL,
    lease_until TIMESTAMPTZ NOT NULL
);

-- What was said about each cause. It stays for a while after the cause is gone: one that comes and goes is told once.
CREATE TABLE health_causes (
    cause         TEXT PRIMARY KEY,
    told_severity TEXT NOT NULL,
    told_at       TIMESTAMPTZ NOT NULL,
    since         TIMESTAMPTZ NOT NULL,
    message       TEXT NOT NULL,
    gone_at       TIMESTAMPTZ
);

-- One row per sending: a sink that was away is tried again from here.
ALTER TABLE alertas_enviados ADD COLUMN sink TEXT NOT NULL DEFAULT 'log';
ALTER TABLE alertas_enviados ADD COLUMN kind TEXT NOT NULL DEFAULT 'alert' CHECK (kind IN ('alert', 'recovery'));
ALTER TABLE alertas_enviados ADD COLUMN outcome TEXT NOT NULL DEFAULT 'sent' CHECK (outcome IN ('pending', 'sent', 'failed'));
ALTER TABLE alertas_enviados ADD COLUMN next_step TEXT;
ALTER TABLE alertas_enviados ADD COLUMN tries INTEGER NOT NULL DEFAULT 0;
ALTER TABLE alertas_enviados ADD COLUMN try_at TIMESTAMPTZ;
ALTER TABLE alertas_enviados ADD COLUMN sent_at TIMESTAMPTZ;
ALTER TABLE alertas_enviados ADD COLUMN resolved_at TIMESTAMPTZ;
CREATE INDEX alertas_enviados_pending ON alertas_enviados (try_at) WHERE outcome = 'pending';
CREATE INDEX alertas_enviados_unresolved ON alertas_enviados (tipo) WHERE resolved_at IS NULL;
CREATE INDEX alertas_enviados_by_time ON alertas_enviados (created_at);

-- Of the incidents that open by themselves, one at a time.
CREATE UNIQUE INDEX health_incidents_open ON health_incidents (trigger_source) WHERE resolved_at IS NULL;
