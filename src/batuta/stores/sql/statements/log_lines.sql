-- write add: store a log line
INSERT INTO log_lines (id, item_id, attempt, at, level, logger, line)
VALUES (:id, :item_id, :attempt, :at, :level, :logger, :line);

-- read of_item: the lines of a task, an item or a run that follow a line, oldest first
SELECT * FROM log_lines WHERE item_id = :item_id AND id > :after ORDER BY id LIMIT :limit;

-- read item: at most two ids of items that have lines, between two ids
SELECT DISTINCT item_id FROM log_lines WHERE item_id >= :least AND item_id <= :most ORDER BY item_id LIMIT 2;

-- write prune: delete a bounded number of lines that are too old, or that are older than a day and whose item was deleted
DELETE FROM log_lines WHERE id IN (
    SELECT id FROM log_lines AS old
    WHERE at < :before
      AND (at < :oldest
           OR (NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.id = old.item_id)
               AND NOT EXISTS (SELECT 1 FROM pipeline_items WHERE pipeline_items.id = old.item_id)
               AND NOT EXISTS (SELECT 1 FROM job_executions WHERE job_executions.id = old.item_id)))
    ORDER BY at LIMIT :limit);
