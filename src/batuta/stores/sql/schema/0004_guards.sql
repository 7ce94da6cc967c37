-- How each circuit breaker stands; one that has no row is closed.
CREATE TABLE circuits (
    circuit_name         TEXT PRIMARY KEY,
    state                TEXT NOT NULL CHECK (state IN ('closed', 'open', 'half_open')),
    falhas_consecutivas  INTEGER NOT NULL DEFAULT 0,
    tentativas_half_open INTEGER NOT NULL DEFAULT 0,
    reset_ms             BIGINT NOT NULL,
    last_failure_at      TIMESTAMPTZ,
    last_success_at      TIMESTAMPTZ,
    last_error           TEXT,
    opened_at            TIMESTAMPTZ,
    wait_until           TIMESTAMPTZ,
    probe                BIGINT NOT NULL DEFAULT 0,
    probe_until          TIMESTAMPTZ,
    updated_at           TIMESTAMPTZ NOT NULL
);
CREATE INDEX circuit_transitions_by_time ON circuit_transitions (created_at DESC);

-- What was taken from rate limits: one row per reservation and key. It counts until counts_at and a window's length after it;
-- until it is confirmed, counts_at is the last instant at which its holder may act.
CREATE TABLE rate_tokens (
    reservation UUID NOT NULL,
    rate_key    TEXT NOT NULL,
    counts_at   TIMESTAMPTZ NOT NULL,
    confirmed   BOOLEAN NOT NULL DEFAULT FALSE,
    kept_until  TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (reservation, rate_key)
);
CREATE INDEX rate_tokens_of_key ON rate_tokens (rate_key, counts_at);
CREATE INDEX rate_tokens_over ON rate_tokens (kept_until);
