-- write put on sqlite: insert new items; skip an item whose key an unfinished item has
INSERT INTO {table} ({columns}) SELECT {filled} FROM json_each(:rows) AS row
WHERE :notified IS NOT NULL AND :every IS NOT NULL ON CONFLICT DO NOTHING;

-- write put on postgres: insert new items; skip an item whose key an unfinished item has
WITH accepted AS (
    INSERT INTO {table} ({columns}) SELECT {filled}
    FROM jsonb_populate_recordset(NULL::{table}, :rows) AS row CROSS JOIN jsonb_populate_record(NULL::{table}, :every) AS every
    ON CONFLICT DO NOTHING RETURNING {id} AS id, pg_notify('batuta', {notified}) IS NULL AS sent
)
SELECT accepted.id FROM accepted;

-- read present on sqlite: which of the given ids exist, because put has just inserted them
SELECT json_group_array({id}) AS ids FROM {table} WHERE {id} IN (SELECT value FROM json_each(:ids));

-- read present on postgres: unused, because put returns the inserted ids
SELECT 1;

-- write renew on sqlite: extend leases, and return those whose fence is unchanged
UPDATE {table} SET {lease_until} = coalesce(:now, now()) + :lease
FROM json_each(:held) AS mine
WHERE {table}.{id} = mine.value ->> 'id' AND {table}.{fence} = mine.value ->> 'fence' AND {table}.{lease_until} IS NOT NULL
RETURNING {table}.{id} AS id, {table}.{fence} AS fence, {cancel_wish} AS "cancelled [BOOLEAN]", TRUE AS is_renewed;

-- write renew on postgres: extend leases; skip rows that another transaction has locked
-- A plain read returns every row with an unchanged fence and a lease, so that a skipped row is not mistaken for a lost lease.
WITH held AS MATERIALIZED (SELECT mine.id, mine.fence FROM jsonb_to_recordset(:held) AS mine (id {id_type}, fence bigint)),
free AS MATERIALIZED (
    SELECT item.ctid AS tid FROM held
    JOIN {table} AS item ON item.{id} = held.id AND item.{fence} = held.fence AND {is_leased}
    FOR NO KEY UPDATE OF item SKIP LOCKED
),
renewed AS (
    UPDATE {table} AS item
    SET {lease_until} = coalesce(:now, statement_timestamp()) + :lease::bigint * INTERVAL '1 microsecond'
    FROM free WHERE item.ctid = free.tid RETURNING item.{id} AS id
)
SELECT item.{id} AS id, item.{fence} AS fence, {cancel_wish} AS "cancelled [BOOLEAN]",
       item.{id} IN (SELECT renewed.id FROM renewed) AS is_renewed FROM held
JOIN {table} AS item ON item.{id} = held.id AND item.{fence} = held.fence AND {is_leased};

-- read lapsing on sqlite: leases that have expired or are about to expire
SELECT {id} AS id, {fence} AS fence, {lease_until} AS "lease_until [TIMESTAMPTZ]" FROM {table} INDEXED BY {lease_index}
WHERE {lease_until} IS NOT NULL AND {lease_until} <= coalesce(:now, now()) + :within ORDER BY {lease_until} LIMIT :limit;

-- write lapsing on postgres: leases that have expired or are about to expire
-- Rows that another transaction has locked are skipped, because their owner cannot renew them.
SELECT {id} AS id, {fence} AS fence, {lease_until} AS lease_until FROM {table}
WHERE {lease_until} IS NOT NULL
  AND {lease_until} <= coalesce(:now, statement_timestamp()) + :within::bigint * INTERVAL '1 microsecond'
ORDER BY {lease_until} LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED;

-- write rescue on sqlite: release items whose lease has expired, and count a crash
UPDATE {table} SET {rescued}
WHERE {id} IN (SELECT {id} FROM {table} INDEXED BY {lease_index}
               WHERE {lease_until} IS NOT NULL AND {lease_until} <= (SELECT coalesce(:now, now())) ORDER BY {lease_until} LIMIT :limit)
RETURNING {id} AS id, {state} AS state, {crashes} AS crashes, {rescued_from} AS queue, {task_name} AS task;

-- write rescue on postgres: release items whose lease has expired, and count a crash
UPDATE {table} SET {rescued}
WHERE {id} IN (SELECT {id} FROM {table} WHERE {lease_until} IS NOT NULL AND {lease_until} <= coalesce(:now, statement_timestamp())
               ORDER BY {lease_until} LIMIT :limit FOR UPDATE SKIP LOCKED)
RETURNING {id} AS id, {state} AS state, {crashes} AS crashes, {rescued_from} AS queue, {task_name} AS task, pg_notify('batuta', {own_queue}) IS NULL AS sent;

-- write rescue_seen on sqlite: release items whose expired lease has not changed since it was observed, and count a crash
UPDATE {table} SET {rescued}
WHERE {id} IN (SELECT item.{id} FROM json_each(:seen) AS seen CROSS JOIN {table} AS item
               WHERE item.{id} = seen.value ->> 0 AND item.{fence} = seen.value ->> 1
                 AND item.{lease_until} = seen.value ->> 2 AND item.{lease_until} <= coalesce(:now, now()) LIMIT :limit)
RETURNING {id} AS id, {state} AS state, {crashes} AS crashes, {rescued_from} AS queue, {task_name} AS task;

-- write rescue_seen on postgres: release items whose expired lease has not changed since it was observed, and count a crash
UPDATE {table} SET {rescued}
WHERE {id} IN (SELECT item.{id} FROM jsonb_array_elements(:seen) AS seen (lease) JOIN {table} AS item
               ON item.{id} = (seen.lease ->> 0)::{id_type} AND item.{fence} = (seen.lease ->> 1)::bigint
               AND item.{lease_until} = TIMESTAMPTZ 'epoch' + (seen.lease ->> 2)::bigint * INTERVAL '1 microsecond'
               WHERE item.{lease_until} <= coalesce(:now, statement_timestamp()) LIMIT :limit FOR NO KEY UPDATE OF item SKIP LOCKED)
RETURNING {id} AS id, {state} AS state, {crashes} AS crashes, {rescued_from} AS queue, {task_name} AS task, pg_notify('batuta', {own_queue}) IS NULL AS sent;

-- write rescue_owned on sqlite: release items of owners whose processes are proven dead, before their leases expire
UPDATE {table} SET {rescued}
WHERE {id} IN (SELECT {id} FROM {table} INDEXED BY {lease_index}
               WHERE {lease_until} IS NOT NULL AND {owner} IN (SELECT value FROM json_each(:owners))
               ORDER BY {lease_until} LIMIT :limit)
RETURNING {id} AS id, {state} AS state, {crashes} AS crashes, {rescued_from} AS queue, {task_name} AS task;

-- write rescue_owned on postgres: release items of owners whose processes are proven dead, before their leases expire
UPDATE {table} SET {rescued}
WHERE {id} IN (SELECT {id} FROM {table}
               WHERE {lease_until} IS NOT NULL AND {owner} IN (SELECT jsonb_array_elements_text(:owners))
               ORDER BY {lease_until} LIMIT :limit FOR UPDATE SKIP LOCKED)
RETURNING {id} AS id, {state} AS state, {crashes} AS crashes, {rescued_from} AS queue, {task_name} AS task, pg_notify('batuta', {own_queue}) IS NULL AS sent;

-- write release_stray on sqlite: undo claims whose owner is alive but never received the reply; count neither an attempt nor a crash
UPDATE {table} SET {released}
WHERE {id} IN (SELECT {id} FROM {table} INDEXED BY {lease_index} WHERE {lease_until} IS NOT NULL AND {owner} = :owner{in_queue}
               AND {id} NOT IN (SELECT value FROM json_each(:known)))
RETURNING {id} AS id;

-- write release_stray on postgres: undo claims whose owner is alive but never received the reply; count neither an attempt nor a crash
UPDATE {table} SET {released}
WHERE {id} IN (SELECT {id} FROM {table} WHERE {lease_until} IS NOT NULL AND {owner} = :owner{in_queue}
               AND {id}::text NOT IN (SELECT jsonb_array_elements_text(:known)) FOR NO KEY UPDATE SKIP LOCKED)
RETURNING {id} AS id, pg_notify('batuta', {own_queue}) IS NULL AS sent;

-- read owners on sqlite: the owners that hold leases
SELECT DISTINCT {owner} AS owner FROM {table} INDEXED BY {lease_index} WHERE {lease_until} IS NOT NULL AND {owner} IS NOT NULL;

-- read owners on postgres: the owners that hold leases
SELECT DISTINCT {owner} AS owner FROM {table} WHERE {lease_until} IS NOT NULL AND {owner} IS NOT NULL;

-- write note on sqlite: write the error of a leased item
UPDATE {table} SET {error} = :error WHERE {id} = :id AND {fence} = :fence AND {lease_until} IS NOT NULL;

-- write note on postgres: write the error of a leased item; skip a row that another transaction has locked
UPDATE {table} SET {error} = :error
WHERE {id} IN (SELECT {id} FROM {table} WHERE {id} = :id AND {fence} = :fence AND {lease_until} IS NOT NULL FOR NO KEY UPDATE SKIP LOCKED);

-- read last_error: the error of an item, and the current time; always one row
SELECT (SELECT {error} FROM {table} WHERE {id} = :id) AS error, coalesce(:now, {clock}) AS "now [TIMESTAMPTZ]";

-- read next_at on sqlite: the time at which the next item is due
WITH RECURSIVE {levels_alone}
SELECT min(at) AS "at [TIMESTAMPTZ]", coalesce(:now, now()) AS "now [TIMESTAMPTZ]" FROM (
    SELECT (SELECT {available_at} FROM {table} INDEXED BY {ready_index}
            WHERE {is_ready}{in_queue}{of_level} AND typeof({available_at}) = 'integer'
            ORDER BY {available_at} LIMIT 1) AS at FROM level WHERE value IS NOT NULL
    UNION ALL
    SELECT CASE WHEN ({last_level}) IS NOT NULL THEN (
        SELECT {available_at} FROM {table} WHERE {is_ready}{in_queue} AND typeof({available_at}) = 'integer'
        ORDER BY {available_at} LIMIT 1) END);

-- read next_at on postgres: the time at which the next item is due
WITH RECURSIVE {levels_alone}
SELECT min(next.at) AS at, coalesce(:now, statement_timestamp()) AS now FROM (
    SELECT due.at FROM level CROSS JOIN LATERAL (
        SELECT {available_at} AS at FROM {table} WHERE {is_ready}{in_queue}{of_level} ORDER BY {available_at} LIMIT 1) AS due
    WHERE level.value IS NOT NULL
    UNION ALL
    SELECT earliest.at FROM ({last_level}) AS last CROSS JOIN LATERAL (
        SELECT {available_at} AS at FROM {table} WHERE {is_ready}{in_queue} AND {has_due_time} AND isfinite({available_at})
        ORDER BY {available_at} LIMIT 1) AS earliest
) AS next WHERE isfinite(next.at);

-- read unserved on sqlite: waiting rows in stages that the pipeline no longer has; reads the whole table
SELECT {state} AS queue, count(*) AS items, min({available_at}) AS "oldest [TIMESTAMPTZ]" FROM {table}
WHERE {lease_until} IS NULL AND {finished_at} IS NULL AND {state} NOT IN (SELECT value FROM json_each(:known))
GROUP BY {state} ORDER BY {state};

-- read unserved on postgres: waiting rows in stages that the pipeline no longer has; reads the whole table
SELECT {state} AS queue, count(*) AS items, min({available_at}) AS oldest FROM {table}
WHERE {lease_until} IS NULL AND {finished_at} IS NULL AND {state} NOT IN (SELECT jsonb_array_elements_text(:known))
GROUP BY {state} ORDER BY {state};

-- write rehome on sqlite: move waiting rows to another queue and reset their attempts
UPDATE {table} SET {queue} = :target, {attempts} = 0{touched}
WHERE {id} IN (SELECT {id} FROM {table} WHERE {queue} = :source AND {waits} LIMIT :limit);

-- write rehome on postgres: move waiting rows to another queue and reset their attempts
UPDATE {table} SET {queue} = :target, {attempts} = 0{touched}
WHERE {id} IN (SELECT {id} FROM {table} WHERE {queue} = :source AND {waits} LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED);

-- write discard_waiting on sqlite: cancel the waiting rows of a queue, and record the reason
UPDATE {table} SET {dropped}
WHERE {id} IN (SELECT {id} FROM {table} WHERE {queue} = :source AND {waits} LIMIT :limit);

-- write discard_waiting on postgres: cancel the waiting rows of a queue, and record the reason
UPDATE {table} SET {dropped}
WHERE {id} IN (SELECT {id} FROM {table} WHERE {queue} = :source AND {waits} LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED);

-- write cancel: cancel a waiting item; request the cancellation of a running item, or of an item whose effect is unknown
UPDATE {table} SET {unwanted} WHERE {id} = :id AND ({is_waiting}{or_is_asked});

-- write revive: make a dead item ready, and reset its attempts and crashes
UPDATE {table} SET {state} = {revived}, {attempts} = 0, {crashes} = 0, {error} = NULL, {finished_at} = NULL,
    {available_at} = coalesce(:now, {clock}), {fence} = {fence} + 1{as_new}
WHERE {id} = :id AND {state} = '{dead}' AND {lease_until} IS NULL{of_pipeline};

-- write discard: delete a dead item
DELETE FROM {table} WHERE {id} = :id AND {state} = '{dead}' AND {lease_until} IS NULL{of_pipeline};

-- read item: one item by id
SELECT * FROM {table} WHERE {id} = :id;

-- read counts: the number of items in each state
SELECT {shown_state} AS state, count(*) AS items FROM {table} WHERE {of_queue} GROUP BY 1;

-- read depth: how many items are waiting, due, running and dead, each counted in its own index
SELECT (SELECT count(*) FROM {table} WHERE {is_ready}{in_queue}) + (SELECT count(*) FROM {table} WHERE {is_unfiled}{in_queue})
           + (SELECT count(*) FROM {table} WHERE {is_in_line}{in_queue}) AS ready,
       (SELECT count(*) FROM {table} WHERE {is_ready}{in_queue} AND {available_at} <= coalesce(:now, {clock}))
           + (SELECT count(*) FROM {table} WHERE {is_unfiled}{in_queue} AND {available_at} <= coalesce(:now, {clock}))
           + (SELECT count(*) FROM {table} WHERE {is_in_line}{in_queue}) AS due,
       (SELECT count(*) FROM {table} WHERE {is_in_line}{in_queue}) AS limited,
       (SELECT count(*) FROM {table} WHERE {lease_until} IS NOT NULL{in_queue}) AS running,
       (SELECT count(*) FROM {table} WHERE {is_dead}) AS dead,
       coalesce(:now, {clock}) AS "now [TIMESTAMPTZ]";

-- read pulse on sqlite: figures for the health check: due, stuck, running and dead items, and whether the queue is paused
WITH RECURSIVE {levels_alone}
SELECT coalesce(:now, now()) AS "now [TIMESTAMPTZ]",
       coalesce(sum(due.items), 0) AS due, min(due.oldest) AS "oldest_due_at [TIMESTAMPTZ]",
       (SELECT count(*) FROM {table} INDEXED BY {lease_index}
        WHERE {lease_until} IS NOT NULL AND {lease_until} <= (SELECT coalesce(:now, now())) - :grace{in_queue}) AS stuck,
       (SELECT count(*) FROM {table} WHERE {is_dead}) AS dead,
       (SELECT count(*) FROM {table} WHERE {is_dead} AND {finished_at} >= coalesce(:now, now()) - :lately) AS dead_lately,
       (SELECT count(*) FROM {table} WHERE {lease_until} IS NOT NULL{in_queue}) AS running,
       (SELECT min({created_at}) FROM {table} WHERE {lease_until} IS NOT NULL{in_queue}) AS "running_since [TIMESTAMPTZ]",
       NOT {not_held} AS "is_held [BOOLEAN]",
       -- A clock step that no worker has corrected yet affects items that were due before the step, and leases from before it.
       coalesce((SELECT (SELECT count(*) FROM {table} INDEXED BY {ready_index}
                         WHERE {is_ready}{in_queue} AND {available_at} > (SELECT coalesce(:now, now())) AND {available_at} <= mark.seen_at)
                      + (SELECT count(*) FROM {table} INDEXED BY {lease_index}
                         WHERE {lease_until} > mark.seen_at AND mark.seen_at > coalesce(:now, now()) + :grace{in_queue})
                 FROM clock_marks AS mark
                 WHERE mark.queue_table = '{table}' AND mark.seen_at > coalesce(:now, now()) + 2000000), 0) AS held_back
FROM (
    SELECT (SELECT count(*) FROM {table} INDEXED BY {ready_index}
            WHERE {is_ready}{in_queue}{of_level} AND {available_at} <= (SELECT coalesce(:now, now()))) AS items,
           (SELECT {available_at} FROM {table} INDEXED BY {ready_index}
            WHERE {is_ready}{in_queue}{of_level} AND {available_at} <= (SELECT coalesce(:now, now()))
            ORDER BY {available_at} LIMIT 1) AS oldest
    FROM level WHERE value IS NOT NULL
    UNION ALL
    SELECT count(*), min({available_at}) FROM {table} INDEXED BY {ready_index}
    WHERE {is_ready}{in_queue} AND {priority} {further} ({last_level}) AND {available_at} <= (SELECT coalesce(:now, now()))
    UNION ALL
    -- An item in a waiting line is held back by a limit, not by a missing worker, so it is not counted.
    SELECT count(*), min({available_at}) FROM {table}
    WHERE {is_unfiled}{in_queue} AND {available_at} <= (SELECT coalesce(:now, now()))
) AS due;

-- read pulse on postgres: figures for the health check: due, stuck, running and dead items, and whether the queue is paused
WITH RECURSIVE {levels_alone},
due AS (
    SELECT coalesce(sum(counted.items), 0)::bigint AS items, min(counted.oldest) AS oldest FROM (
        SELECT at_level.items, at_level.oldest FROM level CROSS JOIN LATERAL (
            SELECT count(*) AS items, min({available_at}) AS oldest FROM {table}
            WHERE {is_ready}{in_queue}{of_level} AND {available_at} <= coalesce(:now, statement_timestamp())) AS at_level
        WHERE level.value IS NOT NULL
        UNION ALL
        SELECT rest.items, rest.oldest FROM ({last_level}) AS last CROSS JOIN LATERAL (
            SELECT count(*) AS items, min({available_at}) AS oldest FROM {table}
            WHERE {is_ready}{in_queue} AND {priority} {further} last.value
              AND {available_at} <= coalesce(:now, statement_timestamp())) AS rest
        UNION ALL
        -- An item in a waiting line is held back by a limit, not by a missing worker, so it is not counted.
        SELECT count(*), min({available_at}) FROM {table}
        WHERE {is_unfiled}{in_queue} AND {available_at} <= coalesce(:now, statement_timestamp())
    ) AS counted
)
SELECT coalesce(:now, statement_timestamp()) AS now, due.items AS due, due.oldest AS oldest_due_at,
       (SELECT count(*) FROM {table} WHERE {lease_until} IS NOT NULL
        AND {lease_until} <= coalesce(:now, statement_timestamp()) - :grace::bigint * INTERVAL '1 microsecond'{in_queue}) AS stuck,
       (SELECT count(*) FROM {table} WHERE {is_dead}) AS dead,
       (SELECT count(*) FROM {table} WHERE {is_dead}
        AND {finished_at} >= coalesce(:now, statement_timestamp()) - :lately::bigint * INTERVAL '1 microsecond') AS dead_lately,
       (SELECT count(*) FROM {table} WHERE {lease_until} IS NOT NULL{in_queue}) AS running,
       (SELECT min({created_at}) FROM {table} WHERE {lease_until} IS NOT NULL{in_queue}) AS running_since,
       NOT {not_held} AS is_held, 0 AS held_back
FROM due;

-- read listed on sqlite: the newest items in the given states
SELECT * FROM {table} WHERE {shown_state} IN (SELECT value FROM json_each(:states)) AND {of_queue} ORDER BY {created_at} DESC LIMIT :limit;

-- read listed on postgres: the newest items in the given states
SELECT * FROM {table} WHERE {shown_state} IN (SELECT jsonb_array_elements_text(:states)) AND {of_queue} ORDER BY {created_at} DESC LIMIT :limit;
