-- What operators ask a process to do. The process reads its own rows every two seconds; ``stack`` is the answer to a request for stacks.
CREATE TABLE process_requests (
    id        UUID PRIMARY KEY,
    worker_id TEXT NOT NULL,
    request   TEXT NOT NULL CHECK (request IN ('drain', 'restart', 'stack')),
    asked_by  TEXT NOT NULL,
    asked_at  TIMESTAMPTZ NOT NULL,
    taken_at  TIMESTAMPTZ,
    stack     TEXT
);
CREATE INDEX process_requests_open ON process_requests (worker_id) WHERE taken_at IS NULL;
CREATE INDEX process_requests_by_time ON process_requests (asked_at DESC);
