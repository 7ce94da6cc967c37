-- write replace: replace the item of a row
UPDATE pipeline_items SET item = :item WHERE id = :id;

-- write move: replace the item of a row that moves to another stage, with its limit key there
UPDATE pipeline_items SET item = :item, limit_key = :key WHERE id = :id;

-- write label: set the limit key of a row that moves to another stage
UPDATE pipeline_items SET limit_key = :key WHERE id = :id;

-- write unlabel on sqlite: clear the limit key of a bounded number of waiting items of stages without limits
UPDATE pipeline_items SET limit_key = NULL, in_line = FALSE WHERE rowid IN (
    SELECT item FROM (
        SELECT rowid AS item FROM pipeline_items INDEXED BY pipeline_items_unfiled
        WHERE stage IN (SELECT value FROM json_each(:stages)) AND lease_until IS NULL AND limit_key IS NOT NULL AND NOT in_line
        UNION ALL
        SELECT rowid FROM pipeline_items INDEXED BY pipeline_items_in_line
        WHERE stage IN (SELECT value FROM json_each(:stages)) AND lease_until IS NULL AND limit_key IS NOT NULL AND in_line)
    LIMIT :limit);

-- write unlabel on postgres: clear the limit key of a bounded number of waiting items of stages without limits
WITH unfiled AS MATERIALIZED (
    SELECT id FROM pipeline_items WHERE stage = ANY(ARRAY(SELECT jsonb_array_elements_text(:stages)))
    AND lease_until IS NULL AND limit_key IS NOT NULL AND NOT in_line LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED
), filed AS MATERIALIZED (
    SELECT id FROM pipeline_items WHERE stage = ANY(ARRAY(SELECT jsonb_array_elements_text(:stages)))
    AND lease_until IS NULL AND limit_key IS NOT NULL AND in_line LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE pipeline_items SET limit_key = NULL, in_line = FALSE WHERE id IN (SELECT id FROM unfiled UNION ALL SELECT id FROM filed);

-- write close_unused_lines on sqlite: delete the lines of stages without limits
DELETE FROM pipeline_lines WHERE name IN (SELECT value FROM json_each(:stages));

-- write close_unused_lines on postgres: delete the lines of stages without limits
DELETE FROM pipeline_lines WHERE name IN (SELECT jsonb_array_elements_text(:stages));

-- read alive: the unfinished item of a pipeline with this key
SELECT id FROM pipeline_items WHERE pipeline = :pipeline AND unique_key = :key AND finished_at IS NULL;

-- write prune on sqlite: delete a bounded number of items whose retention has ended
DELETE FROM pipeline_items
WHERE id IN (SELECT id FROM pipeline_items WHERE expires_at <= coalesce(:now, now()) AND finished_at IS NOT NULL
             ORDER BY expires_at LIMIT :limit);

-- write prune on postgres: delete a bounded number of items whose retention has ended
DELETE FROM pipeline_items
WHERE id IN (SELECT id FROM pipeline_items WHERE expires_at <= coalesce(:now, statement_timestamp()) AND finished_at IS NOT NULL
             ORDER BY expires_at LIMIT :limit FOR UPDATE SKIP LOCKED);
