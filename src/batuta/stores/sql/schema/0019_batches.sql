-- A batch is a set of tasks; it ends when it is closed and all of them have ended. Its counts are stored at the end.
CREATE TABLE batches (
    id             UUID PRIMARY KEY,
    name           TEXT NOT NULL,
    on_end         UUID,
    takes_progress BOOLEAN NOT NULL DEFAULT FALSE,
    created_at     TIMESTAMPTZ NOT NULL,
    closed_at      TIMESTAMPTZ,
    cancelled_at   TIMESTAMPTZ,
    reason         TEXT CHECK (length(reason) <= 500),
    ended_at       TIMESTAMPTZ,
    succeeded      BIGINT,
    failed         BIGINT,
    cancelled      BIGINT
);
CREATE INDEX batches_unended ON batches (created_at) WHERE ended_at IS NULL;
CREATE INDEX batches_newest ON batches (created_at, id);
CREATE INDEX batches_ended ON batches (ended_at) WHERE ended_at IS NOT NULL;
-- Tasks without a batch need no place in the first two indexes. Those of a batch are kept until it has ended.
ALTER TABLE tasks ADD COLUMN batch_id UUID;
CREATE INDEX tasks_of_batch ON tasks (batch_id, status) WHERE batch_id IS NOT NULL;
CREATE INDEX tasks_of_batch_expiring ON tasks (batch_id, expires_at) WHERE batch_id IS NOT NULL AND expires_at IS NOT NULL;
DROP INDEX tasks_expiring;
CREATE INDEX tasks_expiring ON tasks (expires_at) WHERE expires_at IS NOT NULL AND batch_id IS NULL;
-- The task waits until the task or batch ``for_id`` has ended. Until then its due time is far in the future; then it is ``due_at``.
CREATE TABLE task_waits (
    task_id     UUID NOT NULL,
    for_id      UUID NOT NULL,
    runs_anyway BOOLEAN NOT NULL,
    due_at      TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (task_id, for_id)
);
CREATE INDEX task_waits_for ON task_waits (for_id);
