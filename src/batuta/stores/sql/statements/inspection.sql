-- read dead: one page of the dead items, the last failure first
SELECT * FROM {table} WHERE {is_dead}{named} AND ({finished_at}, {id}) < (:at, :id)
ORDER BY {finished_at} DESC, {id} DESC LIMIT :limit;

-- read ready: one page of the waiting items, the next one first
SELECT * FROM {table} WHERE {id} IN (
    SELECT {id} FROM (SELECT {id} FROM {table} WHERE {is_ready}{in_queue}{named} AND ({available_at}, {id}) > (:at, :id)
                      ORDER BY {available_at}, {id} LIMIT :limit) AS plain{or_limited}
)
ORDER BY {available_at}, {id} LIMIT :limit;

-- read running: one page of the items in progress, the oldest lease first
SELECT * FROM {table} WHERE {lease_until} IS NOT NULL{in_queue}{named} AND ({lease_until}, {id}) > (:at, :id)
ORDER BY {lease_until}, {id} LIMIT :limit;

-- read done: one page of the items that succeeded, the newest first
SELECT * FROM {table} WHERE {state} = '{done}'{of_whole}{named} AND {id} < :id ORDER BY {id} DESC LIMIT :limit;

-- read cancelled: one page of the cancelled items, the newest first
SELECT * FROM {table} WHERE {state} = '{cancelled}'{of_whole}{named} AND {id} < :id ORDER BY {id} DESC LIMIT :limit;

-- read errors: how many of the newest dead items have which error
SELECT name, error, count(*) AS items, min(ended) AS "since [TIMESTAMPTZ]", max(ended) AS "latest [TIMESTAMPTZ]"
FROM (SELECT {name_column} AS name, {error} AS error, {finished_at} AS ended FROM {table} WHERE {is_dead}
      ORDER BY {finished_at} DESC LIMIT :most) AS newest
GROUP BY 1, 2 ORDER BY 3 DESC LIMIT :limit;

-- write retry on sqlite: make these dead items ready, and reset their attempts and crashes
UPDATE {table} SET {state} = {revived}, {attempts} = 0, {crashes} = 0, {error} = NULL, {finished_at} = NULL,
    {available_at} = coalesce(:now, now()), {fence} = {fence} + 1{as_new}
WHERE {id} IN (SELECT value FROM json_each(:ids)) AND {state} = '{dead}' AND {lease_until} IS NULL{of_pipeline};

-- write retry on postgres: make these dead items ready, and reset their attempts and crashes
UPDATE {table} SET {state} = {revived}, {attempts} = 0, {crashes} = 0, {error} = NULL, {finished_at} = NULL,
    {available_at} = coalesce(:now, statement_timestamp()), {fence} = {fence} + 1{as_new}
WHERE {id} IN (SELECT value::{id_type} FROM jsonb_array_elements_text(:ids)) AND {state} = '{dead}' AND {lease_until} IS NULL{of_pipeline};

-- write discard on sqlite: delete these dead items
DELETE FROM {table} WHERE {id} IN (SELECT value FROM json_each(:ids)) AND {state} = '{dead}' AND {lease_until} IS NULL{of_pipeline};

-- write discard on postgres: delete these dead items
DELETE FROM {table} WHERE {id} IN (SELECT value::{id_type} FROM jsonb_array_elements_text(:ids))
  AND {state} = '{dead}' AND {lease_until} IS NULL{of_pipeline};

-- write cancel on sqlite: cancel these waiting items; request the cancellation of those that run
UPDATE {table} SET {unwanted} WHERE {id} IN (SELECT value FROM json_each(:ids)) AND ({is_waiting}{or_is_asked});

-- write cancel on postgres: cancel these waiting items; request the cancellation of those that run
UPDATE {table} SET {unwanted}
WHERE {id} IN (SELECT value::{id_type} FROM jsonb_array_elements_text(:ids)) AND ({is_waiting}{or_is_asked});
