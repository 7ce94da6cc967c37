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

-- write close_unused_lines on sqlite: delete the waiting lines of stages that have no limits any more
DELETE FROM pipeline_lines WHERE name IN (SELECT value FROM json_each(:stages));

-- write close_unused_lines on postgres: delete the waiting lines of stages that have no limits any more
DELETE FROM pipeline_lines WHERE name IN (SELECT jsonb_array_elements_text(:stages));

-- read alive: the unfinished item of a pipeline with this key
SELECT id FROM pipeline_items WHERE pipeline = :pipeline AND unique_key = :key AND finished_at IS NULL;

-- write prune on sqlite: delete a bounded number of items whose retention and batch have ended
DELETE FROM pipeline_items
WHERE id IN (SELECT id FROM pipeline_items AS item WHERE expires_at <= coalesce(:now, now()) AND finished_at IS NOT NULL
             AND NOT EXISTS (SELECT 1 FROM batches WHERE id = item.batch_id AND ended_at IS NULL) ORDER BY expires_at LIMIT :limit);

-- write prune on postgres: delete a bounded number of items whose retention and batch have ended
DELETE FROM pipeline_items
WHERE id IN (SELECT id FROM pipeline_items AS item WHERE expires_at <= coalesce(:now, statement_timestamp()) AND finished_at IS NOT NULL
             AND NOT EXISTS (SELECT 1 FROM batches WHERE id = item.batch_id AND ended_at IS NULL)
             ORDER BY expires_at LIMIT :limit FOR UPDATE SKIP LOCKED);

-- write mark_batch: record that a batch has pipeline items, unless it already has records of any kind
UPDATE batches SET members = 'pipeline_items' WHERE id = :id AND members IS NULL AND ended_at IS NULL AND cancelled_at IS NULL;

-- write share_batch on sqlite: the records of a batch that accepts items
SELECT members FROM batches WHERE id = :id AND ended_at IS NULL AND cancelled_at IS NULL;

-- write share_batch on postgres: the records of a batch that accepts items; the batch does not end before the transaction ends
SELECT members FROM batches WHERE id = :id AND ended_at IS NULL AND cancelled_at IS NULL FOR SHARE;

-- read unfinished_batches on sqlite: the given batches that have an unfinished item
SELECT batch.value AS id FROM json_each(:ids) AS batch WHERE EXISTS (
    SELECT 1 FROM pipeline_items WHERE batch_id = batch.value AND batch_id IS NOT NULL AND finished_at IS NULL);

-- read unfinished_batches on postgres: the given batches that have an unfinished item
SELECT batch.id FROM jsonb_array_elements_text(:ids) AS batch (id) WHERE EXISTS (
    SELECT 1 FROM pipeline_items WHERE batch_id = batch.id::uuid AND finished_at IS NULL);

-- read count_batches on sqlite: the number of items of each batch, by state
SELECT batch_id, count(*) FILTER (WHERE finished_at IS NULL AND lease_until IS NULL) AS waiting,
       count(*) FILTER (WHERE finished_at IS NULL AND lease_until IS NOT NULL) AS running,
       count(*) FILTER (WHERE finished_at IS NOT NULL AND stage NOT IN ('dead', 'cancelled')) AS succeeded,
       count(*) FILTER (WHERE stage = 'dead') AS failed, count(*) FILTER (WHERE stage = 'cancelled') AS cancelled
FROM pipeline_items WHERE batch_id IN (SELECT value FROM json_each(:ids)) AND batch_id IS NOT NULL GROUP BY batch_id;

-- read count_batches on postgres: the number of items of each batch, by state
SELECT batch_id, count(*) FILTER (WHERE finished_at IS NULL AND lease_until IS NULL) AS waiting,
       count(*) FILTER (WHERE finished_at IS NULL AND lease_until IS NOT NULL) AS running,
       count(*) FILTER (WHERE finished_at IS NOT NULL AND stage NOT IN ('dead', 'cancelled')) AS succeeded,
       count(*) FILTER (WHERE stage = 'dead') AS failed, count(*) FILTER (WHERE stage = 'cancelled') AS cancelled
FROM pipeline_items WHERE batch_id IN (SELECT jsonb_array_elements_text(:ids)::uuid) GROUP BY batch_id;

-- write cancel_batch on sqlite: cancel a bounded number of waiting items of a batch, or request it for running items
UPDATE pipeline_items SET error = :reason, cancel_requested = lease_until IS NOT NULL,
    stage = CASE WHEN lease_until IS NULL THEN 'cancelled' ELSE stage END,
    finished_at = CASE WHEN lease_until IS NULL THEN coalesce(:now, now()) END,
    expires_at = CASE WHEN lease_until IS NULL THEN coalesce(:now, now()) + :keep END
WHERE id IN (SELECT id FROM pipeline_items WHERE batch_id = :id AND batch_id IS NOT NULL AND finished_at IS NULL AND NOT cancel_requested
             LIMIT :limit);

-- write cancel_batch on postgres: cancel a bounded number of waiting items of a batch, or request it for running items; skip locked rows
UPDATE pipeline_items SET error = :reason, cancel_requested = lease_until IS NOT NULL,
    stage = CASE WHEN lease_until IS NULL THEN 'cancelled' ELSE stage END,
    finished_at = CASE WHEN lease_until IS NULL THEN coalesce(:now, statement_timestamp()) END,
    expires_at = CASE WHEN lease_until IS NULL THEN coalesce(:now, statement_timestamp()) + :keep::bigint * INTERVAL '1 microsecond' END
WHERE id IN (SELECT id FROM pipeline_items WHERE batch_id = :id AND finished_at IS NULL AND NOT cancel_requested
             LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED);
