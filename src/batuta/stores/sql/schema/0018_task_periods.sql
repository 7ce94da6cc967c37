-- Keys that stay unique for a period, even after their task has ended.
CREATE TABLE task_periods (
    name       TEXT NOT NULL,
    unique_key TEXT NOT NULL,
    task_id    UUID,
    until      TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (name, unique_key)
);
CREATE INDEX task_periods_over ON task_periods (until);
