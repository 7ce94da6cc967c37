-- A token may expire, and may be restricted to addresses.
ALTER TABLE api_tokens ADD COLUMN expires_at TIMESTAMPTZ;
ALTER TABLE api_tokens ADD COLUMN networks JSONB NOT NULL DEFAULT '[]';
ALTER TABLE api_tokens ADD COLUMN last_used_at TIMESTAMPTZ;

-- Sessions that ended before their cookie expires: a sign-out counts in every process.
CREATE TABLE ended_sessions (
    session TEXT PRIMARY KEY,
    until   TIMESTAMPTZ NOT NULL
);
CREATE INDEX ended_sessions_by_time ON ended_sessions (until);
