-- write replace: replace the item of a row
UPDATE pipeline_items SET item = :item WHERE id = :id;

-- read alive: the live item of a pipeline with this key
SELECT id FROM pipeline_items WHERE pipeline = :pipeline AND unique_key = :key AND finished_at IS NULL;

-- write prune on sqlite: delete a bounded number of items whose retention has ended
DELETE FROM pipeline_items
WHERE id IN (SELECT id FROM pipeline_items WHERE expires_at <= coalesce(:now, now()) AND finished_at IS NOT NULL
             ORDER BY expires_at LIMIT :limit);

-- write prune on postgres: delete a bounded number of items whose retention has ended
DELETE FROM pipeline_items
WHERE id IN (SELECT id FROM pipeline_items WHERE expires_at <= coalesce(:now, statement_timestamp()) AND finished_at IS NOT NULL
             ORDER BY expires_at LIMIT :limit FOR UPDATE SKIP LOCKED);
