-- The tasks and batches that a released task waited for. They are kept until that task has ended, because it reads their results.
CREATE TABLE task_inputs (
    for_id  UUID NOT NULL,
    task_id UUID NOT NULL,
    PRIMARY KEY (for_id, task_id)
);
