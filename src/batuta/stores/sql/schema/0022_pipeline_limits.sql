-- Items of stages with limits have a key and are claimed from the line of that key, as tasks are (0015). All other items have none,
-- and the indexes of the plain claim contain only them.
ALTER TABLE pipeline_items ADD COLUMN limit_key TEXT;
ALTER TABLE pipeline_items ADD COLUMN in_line BOOLEAN NOT NULL DEFAULT FALSE;
DROP INDEX pipeline_items_ready;
CREATE INDEX pipeline_items_ready ON pipeline_items (stage, priority, available_at, id) WHERE lease_until IS NULL AND limit_key IS NULL;
DROP INDEX pipeline_items_due;
CREATE INDEX pipeline_items_due ON pipeline_items (stage, available_at) WHERE lease_until IS NULL AND limit_key IS NULL;
CREATE INDEX pipeline_items_unfiled ON pipeline_items (stage, available_at)
    WHERE lease_until IS NULL AND limit_key IS NOT NULL AND NOT in_line;
CREATE INDEX pipeline_items_in_line ON pipeline_items (stage, limit_key, priority, available_at, id)
    WHERE lease_until IS NULL AND limit_key IS NOT NULL AND in_line;
CREATE INDEX pipeline_items_limited ON pipeline_items (stage, limit_key) WHERE lease_until IS NOT NULL AND limit_key IS NOT NULL;
CREATE TABLE pipeline_lines (
    name      TEXT NOT NULL,
    limit_key TEXT NOT NULL,
    next_at   TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (name, limit_key)
);
CREATE INDEX pipeline_lines_next ON pipeline_lines (name, next_at, limit_key);
