-- One row per restart: of a loop inside its process, or, where loop is NULL, of the whole process.
CREATE TABLE worker_restarts (
    id                 UUID PRIMARY KEY,
    at                 TIMESTAMPTZ NOT NULL,
    worker_id          TEXT NOT NULL,
    worker_name        TEXT NOT NULL,
    loop               TEXT,
    reason             TEXT NOT NULL,
    detail             TEXT NOT NULL,
    stack              TEXT,
    exit_code          INTEGER,
    restarts_in_window INTEGER NOT NULL,
    host               TEXT NOT NULL,
    pid                INTEGER NOT NULL
);
CREATE INDEX worker_restarts_by_time ON worker_restarts (at DESC);
