-- write put on sqlite: new items; one whose key is alive already is left out
INSERT INTO {table} ({columns}) SELECT {picked} FROM json_each(:rows) WHERE :bell IS NOT NULL
ON CONFLICT DO NOTHING RETURNING {id} AS id;

-- write put on postgres: new items; one whose key is alive already is left out
WITH accepted AS (
    INSERT INTO {table} ({columns}) SELECT {columns} FROM jsonb_populate_recordset(NULL::{table}, :rows)
    ON CONFLICT DO NOTHING RETURNING {id} AS id, pg_notify('batuta', {bell}) IS NULL AS rung
)
SELECT accepted.id FROM accepted;

-- read levels on sqlite: the priorities of which something is due, the most urgent first
WITH RECURSIVE {levels_alone}
SELECT value FROM level WHERE value IS NOT NULL AND EXISTS (
    SELECT 1 FROM {table} INDEXED BY {ready_index} WHERE {is_ready}{in_queue}{of_level} AND {available_at} <= coalesce(:now, now()));

-- read levels on postgres: not asked: there a claim goes through them by itself
SELECT 1;

-- write claim on sqlite: the next items of one priority, and with them their lease
UPDATE {table} SET {taken}, {lease_until} = coalesce(:now, now()) + :lease
WHERE {id} IN (
    SELECT {id} FROM {table} INDEXED BY {ready_index}
    WHERE {is_ready}{in_queue}{at_level} AND {available_at} <= coalesce(:now, now()) AND {not_held}
    ORDER BY {available_at}, {id} LIMIT :limit)
RETURNING *;

-- write claim on postgres: the next items, the most urgent first, and with them their lease
WITH RECURSIVE {levels}
picked AS MATERIALIZED ({pick} LIMIT :limit)
UPDATE {table} SET {taken}, {lease_until} = coalesce(:now, statement_timestamp()) + :lease::bigint * INTERVAL '1 microsecond'
WHERE {id} = ANY(ARRAY(SELECT {id} FROM picked))
RETURNING *;

-- write turn on sqlite: not asked: settling and claiming share a commit there anyhow
SELECT 1;

-- write turn on postgres: settle the last batch and claim the next in one statement, with one commit
WITH RECURSIVE {levels}
settled AS ({settle} RETURNING item.{id} AS id, item.{fence} AS fence{handed_over}),
picked AS MATERIALIZED ({pick} LIMIT :limit),
claimed AS (
    UPDATE {table} SET {taken}, {lease_until} = coalesce(:now, statement_timestamp()) + :lease::bigint * INTERVAL '1 microsecond'
    WHERE {id} = ANY(ARRAY(SELECT {id} FROM picked))
    RETURNING *
)
-- What was settled stands in the first row alone: in every row it would be more to read than the items themselves.
SELECT CASE row_number() OVER () WHEN 1 THEN ended.ids END AS settled_ids,
       CASE row_number() OVER () WHEN 1 THEN ended.fences END AS settled_fences, claimed.*
FROM (SELECT array_agg(settled.id) AS ids, array_agg(settled.fence) AS fences FROM settled) AS ended LEFT JOIN claimed ON TRUE;

-- write claim_reversed on sqlite: not asked: there the priorities are gone through one by one
SELECT 1;

-- write claim_reversed on postgres: now and then the least urgent come first: nobody starves
WITH RECURSIVE {levels_reversed}
picked AS MATERIALIZED ({pick} LIMIT :limit)
UPDATE {table} SET {taken}, {lease_until} = coalesce(:now, statement_timestamp()) + :lease::bigint * INTERVAL '1 microsecond'
WHERE {id} = ANY(ARRAY(SELECT {id} FROM picked))
RETURNING *;

-- write claim_in_turn on sqlite: one item of each group that has none going
UPDATE {table} SET {taken}, {lease_until} = coalesce(:now, now()) + :lease
WHERE {id} IN (
    WITH RECURSIVE groups(value) AS (
        SELECT (SELECT min({group}) FROM {table} INDEXED BY {ready_index} WHERE {is_ready}{in_queue})
        UNION ALL
        SELECT (SELECT min({group}) FROM {table} INDEXED BY {ready_index} WHERE {is_ready}{in_queue}
                AND {group} > groups.value) FROM groups WHERE groups.value IS NOT NULL
    )
    SELECT (SELECT {id} FROM {table} INDEXED BY {ready_index}
            WHERE {is_ready}{in_queue} AND {group} = groups.value AND {available_at} <= coalesce(:now, now()) AND {not_held}
            ORDER BY {in_group_order} LIMIT 1) AS next
    FROM groups
    WHERE groups.value IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM {table} AS busy WHERE busy.{group} = groups.value AND busy.{lease_until} IS NOT NULL)
    ORDER BY random() LIMIT :limit)
RETURNING *;

-- write claim_in_turn on postgres: one item of each group that has none going; a group is held while it is looked at
WITH RECURSIVE groups(value) AS (
    SELECT (SELECT min({group}) FROM {table} WHERE {is_ready}{in_queue})
    UNION ALL
    SELECT (SELECT min({group}) FROM {table} WHERE {is_ready}{in_queue} AND {group} > groups.value)
    FROM groups WHERE groups.value IS NOT NULL
),
free AS MATERIALIZED (
    SELECT value FROM groups
    WHERE value IS NOT NULL AND pg_try_advisory_xact_lock(hashtext('{table}'), hashtext(value::text))
),
picked AS MATERIALIZED (
    SELECT item.{id} FROM free CROSS JOIN LATERAL (
        SELECT {id} FROM {table}
        WHERE {is_ready}{in_queue} AND {group} = free.value AND {available_at} <= coalesce(:now, statement_timestamp())
          AND {not_held} AND NOT EXISTS (
              SELECT 1 FROM {table} AS busy WHERE busy.{group} = free.value AND busy.{lease_until} IS NOT NULL)
        ORDER BY {in_group_order} LIMIT 1 FOR UPDATE SKIP LOCKED
    ) AS item ORDER BY random() LIMIT :limit
)
UPDATE {table} SET {taken}, {lease_until} = coalesce(:now, statement_timestamp()) + :lease::bigint * INTERVAL '1 microsecond'
WHERE {id} = ANY(ARRAY(SELECT {id} FROM picked))
RETURNING *;

-- write settle on sqlite: how items ended; whoever lost one meanwhile writes nothing about it
{settle} RETURNING {table}.{id} AS id, {table}.{fence} AS fence;

-- write settle on postgres: how items ended; whoever lost one meanwhile writes nothing about it
{settle} RETURNING item.{id} AS id, item.{fence} AS fence{handed_over};

-- write renew on sqlite: whoever works on them is alive; tells which of them are still ours
UPDATE {table} SET {lease_until} = coalesce(:now, now()) + :lease
FROM json_each(:held) AS mine
WHERE {table}.{id} = mine.value ->> 'id' AND {table}.{fence} = mine.value ->> 'fence' AND {table}.{lease_until} IS NOT NULL
RETURNING {table}.{id} AS id, {table}.{fence} AS fence, {cancel_wish} AS "cancelled [BOOLEAN]";

-- write renew on postgres: whoever works on them is alive; tells which of them are still ours
UPDATE {table} AS item
SET {lease_until} = coalesce(:now, statement_timestamp()) + :lease::bigint * INTERVAL '1 microsecond'
FROM jsonb_to_recordset(:held) AS mine (id {id_type}, fence bigint)
WHERE item.{id} = mine.id AND item.{fence} = mine.fence AND item.{lease_until} IS NOT NULL
RETURNING item.{id} AS id, item.{fence} AS fence, {cancel_wish} AS "cancelled [BOOLEAN]";

-- write rescue on sqlite: items whose worker fell silent come back, or are taken for the cause of it
UPDATE {table} SET {rescued}
WHERE {id} IN (SELECT {id} FROM {table} INDEXED BY {lease_index}
               WHERE {lease_until} IS NOT NULL AND {lease_until} <= coalesce(:now, now()) ORDER BY {lease_until} LIMIT :limit)
RETURNING {id} AS id, {state} AS state, {crashes} AS crashes;

-- write rescue on postgres: items whose worker fell silent come back, or are taken for the cause of it
UPDATE {table} SET {rescued}
WHERE {id} IN (SELECT {id} FROM {table} WHERE {lease_until} IS NOT NULL AND {lease_until} <= coalesce(:now, statement_timestamp())
               ORDER BY {lease_until} LIMIT :limit FOR UPDATE SKIP LOCKED)
RETURNING {id} AS id, {state} AS state, {crashes} AS crashes, pg_notify('batuta', {own_bell}) IS NULL AS rung;

-- read next_at on sqlite: when the next item is due
WITH RECURSIVE {levels_alone}
SELECT min((SELECT {available_at} FROM {table} INDEXED BY {ready_index}
            WHERE {is_ready}{in_queue}{of_level} ORDER BY {available_at} LIMIT 1)) AS "at [TIMESTAMPTZ]"
FROM level WHERE value IS NOT NULL;

-- read next_at on postgres: when the next item is due
WITH RECURSIVE {levels_alone}
SELECT min(due.at) AS at FROM level CROSS JOIN LATERAL (
    SELECT {available_at} AS at FROM {table} WHERE {is_ready}{in_queue}{of_level} ORDER BY {available_at} LIMIT 1) AS due
WHERE level.value IS NOT NULL;

-- write cancel: at once if nobody works on it
UPDATE {table} SET {state} = '{cancelled}', {error} = :reason, {finished_at} = coalesce(:now, {clock}){and_kept}
WHERE {id} = :id AND {is_ready};

-- write wish_cancelled: somebody works on it: it is asked to stop
UPDATE {table} SET {wish} WHERE {id} = :id AND {lease_until} IS NOT NULL;

-- write revive: a dead item is tried again, as if for the first time
UPDATE {table} SET {state} = {revived}, {attempts} = 0, {crashes} = 0, {error} = NULL, {finished_at} = NULL,
    {available_at} = coalesce(:now, {clock}), {fence} = {fence} + 1{as_new}
WHERE {id} = :id AND {state} = '{dead}' AND {lease_until} IS NULL;

-- write discard: a dead item goes for good
DELETE FROM {table} WHERE {id} = :id AND {state} = '{dead}' AND {lease_until} IS NULL;

-- read item: one of them
SELECT * FROM {table} WHERE {id} = :id;

-- read counts: how many are in which state
SELECT {state} AS state, count(*) AS items FROM {table} WHERE TRUE{in_queue} GROUP BY {state};

-- read depth: what waits, what is due of it, what runs and what is dead, each counted in its own index
SELECT (SELECT count(*) FROM {table} WHERE {is_ready}{in_queue}) AS ready,
       (SELECT count(*) FROM {table} WHERE {is_ready}{in_queue} AND {available_at} <= coalesce(:now, {clock})) AS due,
       (SELECT count(*) FROM {table} WHERE {lease_until} IS NOT NULL{in_queue}) AS running,
       (SELECT count(*) FROM {table} WHERE {state} = '{dead}'{in_queue}) AS dead,
       coalesce(:now, {clock}) AS "now [TIMESTAMPTZ]";

-- read listed on sqlite: the newest in some states
SELECT * FROM {table} WHERE {state} IN (SELECT value FROM json_each(:states)){in_queue} ORDER BY {created_at} DESC LIMIT :limit;

-- read listed on postgres: the newest in some states
SELECT * FROM {table} WHERE {state} IN (SELECT jsonb_array_elements_text(:states)){in_queue} ORDER BY {created_at} DESC LIMIT :limit;
