-- Items of tasks with limits have a key and are claimed from the line of that key. All other items have none, and the indexes of
-- the plain claim contain only them.
ALTER TABLE tasks ADD COLUMN limit_key TEXT;
ALTER TABLE tasks ADD COLUMN in_line BOOLEAN NOT NULL DEFAULT FALSE;
DROP INDEX tasks_ready;
CREATE INDEX tasks_ready ON tasks (queue, priority, available_at, id)
    WHERE status = 'queued' AND lease_until IS NULL AND limit_key IS NULL;
DROP INDEX tasks_due;
CREATE INDEX tasks_due ON tasks (queue, available_at) WHERE status = 'queued' AND lease_until IS NULL AND limit_key IS NULL;
-- Limited items that no claim has seen since they became due, or since they returned to the queue.
CREATE INDEX tasks_unfiled ON tasks (name, available_at, queue)
    WHERE status = 'queued' AND lease_until IS NULL AND limit_key IS NOT NULL AND NOT in_line;
-- Limited items that are due and wait in a line.
CREATE INDEX tasks_in_line ON tasks (name, limit_key, priority, available_at, id, queue)
    WHERE status = 'queued' AND lease_until IS NULL AND limit_key IS NOT NULL AND in_line;
CREATE INDEX tasks_limited ON tasks (name, limit_key) WHERE lease_until IS NOT NULL AND limit_key IS NOT NULL;
-- One row for each key with items in line. The claim visits the line again at next_at; a served line goes to the end.
CREATE TABLE task_lines (
    name      TEXT NOT NULL,
    limit_key TEXT NOT NULL,
    next_at   TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (name, limit_key)
);
CREATE INDEX task_lines_next ON task_lines (name, next_at, limit_key);
