-- write claim: the next items, the most urgent first, and with them their lease
WITH RECURSIVE {levels}
picked AS MATERIALIZED ({pick} LIMIT :limit)
UPDATE {table} SET {taken}, {lease_until} = coalesce(:now, statement_timestamp()) + :lease::bigint * INTERVAL '1 microsecond'
WHERE {id} = ANY(ARRAY(SELECT {id} FROM picked))
RETURNING {given};

-- write turn: settle the last batch and claim the next in one statement, with one commit; waits for row locks of the last batch
WITH RECURSIVE {levels}
settled AS ({settle} RETURNING item.{id} AS id, item.{fence} AS fence{handed_over}),
picked AS MATERIALIZED ({pick} LIMIT :limit),
claimed AS (
    UPDATE {table} SET {taken}, {lease_until} = coalesce(:now, statement_timestamp()) + :lease::bigint * INTERVAL '1 microsecond'
    WHERE {id} = ANY(ARRAY(SELECT {id} FROM picked))
    RETURNING {given}
)
-- What was settled stands in the first row alone: in every row it would be more to read than the items themselves.
SELECT CASE row_number() OVER () WHEN 1 THEN ended.ids END AS settled_ids,
       CASE row_number() OVER () WHEN 1 THEN ended.fences END AS settled_fences, claimed.*
FROM (SELECT array_agg(settled.id) AS ids, array_agg(settled.fence) AS fences FROM settled) AS ended LEFT JOIN claimed ON TRUE;

-- write claim_reversed: now and then the least urgent come first: nobody starves
WITH RECURSIVE {levels_reversed}
picked AS MATERIALIZED ({pick} LIMIT :limit)
UPDATE {table} SET {taken}, {lease_until} = coalesce(:now, statement_timestamp()) + :lease::bigint * INTERVAL '1 microsecond'
WHERE {id} = ANY(ARRAY(SELECT {id} FROM picked))
RETURNING {given};

-- read somewhere: any group of which something waits
WITH RECURSIVE {groups_from_the_first}
SELECT value FROM groups WHERE value IS NOT NULL ORDER BY random() LIMIT 1;

-- write claim_in_turn: one item of each group that has none going, the groups one after the other and then from the first again; a
-- group is held while it is looked at, and no more are looked at than it takes
WITH RECURSIVE {groups_in_turn},
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
    ) AS item LIMIT :limit
)
UPDATE {table} SET {taken}, {lease_until} = coalesce(:now, statement_timestamp()) + :lease::bigint * INTERVAL '1 microsecond'
WHERE {id} = ANY(ARRAY(SELECT {id} FROM picked))
RETURNING {given};

-- write settle: write endings, each guarded by its fence; rows locked by another transaction are skipped
{settle_unlocked} RETURNING item.{id} AS id, item.{fence} AS fence{handed_over};

-- read still_leased: which of these leases still have their fence
SELECT item.{id} AS id, item.{fence} AS fence FROM jsonb_to_recordset(:held) AS mine (id {id_type}, fence bigint)
JOIN {table} AS item ON item.{id} = mine.id AND item.{fence} = mine.fence AND item.{lease_until} IS NOT NULL;
