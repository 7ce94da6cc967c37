-- The ready items by their due time: the next one, and the due ones, are found whatever the number of priorities.
CREATE INDEX tasks_due ON tasks (queue, available_at) WHERE status = 'queued' AND lease_until IS NULL;
