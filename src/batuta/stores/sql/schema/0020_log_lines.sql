-- Log lines of tasks, items and runs: bounded per attempt and masked. item_id is the id of the task, the item or the run.
CREATE TABLE log_lines (
    id      UUID PRIMARY KEY,
    item_id UUID NOT NULL,
    attempt INTEGER NOT NULL,
    at      TIMESTAMPTZ NOT NULL,
    level   TEXT NOT NULL,
    logger  TEXT NOT NULL,
    line    TEXT NOT NULL
);
CREATE INDEX log_lines_of_item ON log_lines (item_id, id);
CREATE INDEX log_lines_by_time ON log_lines (at);
