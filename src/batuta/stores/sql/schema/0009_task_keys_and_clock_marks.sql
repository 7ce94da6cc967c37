-- A key is unique among the live tasks of one name: two tasks may use the same business key.
DROP INDEX tasks_alive;
CREATE UNIQUE INDEX tasks_alive ON tasks (name, unique_key) WHERE status IN ('queued', 'in_progress') AND unique_key IS NOT NULL;
-- SQLite has the clock of its machine. The latest instant that was seen for each queue table: a clock that shows less was set back.
CREATE TABLE clock_marks (
    queue_table TEXT PRIMARY KEY,
    seen_at     TIMESTAMPTZ NOT NULL
);
