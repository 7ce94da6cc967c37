-- Without statistics, PostgreSQL expects one waiting row and considers each index of waiting rows equally good. The claim then read
-- every waiting row in the order of its due time to find the first priority. With this condition, PostgreSQL uses the indexes only
-- for statements that also contain it. SQLite chooses the index that its statements name.
-- on postgres
DROP INDEX tasks_due;
CREATE INDEX tasks_due ON tasks (queue, available_at)
    WHERE status = 'queued' AND lease_until IS NULL AND limit_key IS NULL AND available_at < 'infinity';
DROP INDEX pipeline_items_due;
CREATE INDEX pipeline_items_due ON pipeline_items (stage, available_at)
    WHERE lease_until IS NULL AND limit_key IS NULL AND available_at < 'infinity';
