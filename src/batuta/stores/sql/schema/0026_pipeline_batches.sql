-- Items of a pipeline may belong to a batch, and a running item can be cancelled.
ALTER TABLE pipeline_items ADD COLUMN batch_id UUID;
ALTER TABLE pipeline_items ADD COLUMN cancel_requested BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX pipeline_items_of_batch ON pipeline_items (batch_id, finished_at, stage) WHERE batch_id IS NOT NULL;
