-- write claim: lease the next due items, most urgent priority first
{pick_in_order}
UPDATE {table} SET {taken}, {lease_until} = coalesce(:now, statement_timestamp()) + :lease::bigint * INTERVAL '1 microsecond'
WHERE {id} = ANY(ARRAY(SELECT {id} FROM picked))
RETURNING {given}{and_priority};

-- write claim_after: lease the due items that follow the last item of an earlier claim; none if an item of another priority waits
-- The index still contains the entries of items that were claimed before, until VACUUM removes them. This statement does not read
-- these entries.
WITH picked AS MATERIALIZED (
    SELECT {id} FROM {table}
    WHERE {is_ready}{in_queue} AND {available_at} <= coalesce(:now, statement_timestamp()) AND {not_held}{after_last}
    ORDER BY {available_at}, {id} LIMIT :limit FOR UPDATE SKIP LOCKED
)
UPDATE {table} SET {taken}, {lease_until} = coalesce(:now, statement_timestamp()) + :lease::bigint * INTERVAL '1 microsecond'
WHERE {id} = ANY(ARRAY(SELECT {id} FROM picked))
RETURNING {given}{and_priority};

-- write settle_and_claim: settle the previous batch and claim the next one in one statement; waits for locks on the rows to be settled
{pick_in_order},
settled AS ({settle} RETURNING item.{id} AS id, item.{fence} AS fence{handed_over}),
succeeded AS ({settle_successes} RETURNING item.{id} AS id, item.{fence} AS fence),
claimed AS (
    UPDATE {table} SET {taken}, {lease_until} = coalesce(:now, statement_timestamp()) + :lease::bigint * INTERVAL '1 microsecond'
    WHERE {id} = ANY(ARRAY(SELECT {id} FROM picked))
    RETURNING {given}
)
-- The settled ids are returned only if a lease was lost, and only in the first row.
SELECT claimed.*, CASE WHEN ended.count < :expected AND row_number() OVER () = 1 THEN ended.ids END AS settled_ids,
       CASE WHEN ended.count < :expected AND row_number() OVER () = 1 THEN ended.fences END AS settled_fences, ended.count AS settled_count
FROM (SELECT count(*) AS count, array_agg(written.id) AS ids, array_agg(written.fence) AS fences
      FROM (SELECT id, fence FROM settled UNION ALL SELECT id, fence FROM succeeded) AS written) AS ended
LEFT JOIN claimed ON TRUE;

-- write claim_reversed: lease due items from the least urgent priority, so that no priority starves
{pick_in_reverse}
UPDATE {table} SET {taken}, {lease_until} = coalesce(:now, statement_timestamp()) + :lease::bigint * INTERVAL '1 microsecond'
WHERE {id} = ANY(ARRAY(SELECT {id} FROM picked))
RETURNING {given};

-- read somewhere: a random group that has a waiting item
WITH RECURSIVE {groups_from_the_first}
SELECT value FROM groups WHERE value IS NOT NULL ORDER BY random() LIMIT 1;

-- write lock_groups: lock the next groups with a due item and no running item, until the transaction ends
-- Checks a bounded number of groups, in round robin. Only returned groups are locked, because a server has room for a few thousand
-- locks.
WITH RECURSIVE {groups_in_turn},
due AS MATERIALIZED (
    SELECT groups.value FROM groups CROSS JOIN LATERAL (
        SELECT 1 FROM {table}
        WHERE {is_ready}{in_queue} AND {group} = groups.value AND {available_at} <= coalesce(:now, statement_timestamp())
          AND NOT EXISTS (SELECT 1 FROM {table} AS busy WHERE busy.{group} = groups.value AND busy.{lease_until} IS NOT NULL)
        LIMIT 1
    ) AS item WHERE groups.value IS NOT NULL AND {not_held}
)
SELECT value FROM due WHERE pg_try_advisory_xact_lock(hashtext('{table}'), hashtext(value::text)) LIMIT :limit;

-- read has_more_groups: whether groups wait after those that lock_groups checked
WITH RECURSIVE {groups_in_turn} SELECT count(*) >= {most_groups} AS has_more FROM groups;

-- write lock_due_groups: lock groups like lock_groups, but with one pass over the waiting rows, for many groups of which few are
-- due
WITH due AS MATERIALIZED (
    SELECT DISTINCT {group} AS value FROM {table}
    WHERE {is_ready}{in_queue} AND {group} IS NOT NULL AND {available_at} <= coalesce(:now, statement_timestamp()) AND {not_held}
      AND {group} NOT IN (SELECT busy.{group} FROM {table} AS busy WHERE busy.{lease_until} IS NOT NULL AND busy.{group} IS NOT NULL)
), in_turn AS MATERIALIZED (SELECT value FROM due ORDER BY value <= :after, value)
SELECT value FROM in_turn WHERE pg_try_advisory_xact_lock(hashtext('{table}'), hashtext(value::text)) LIMIT :limit;

-- write claim_groups: claim one item of each locked group
-- A separate statement, because its snapshot must be taken after the locks and include the claims of earlier lock holders.
WITH picked AS MATERIALIZED (
    SELECT item.{id} FROM jsonb_populate_recordset(NULL::{table}, :groups) AS locked CROSS JOIN LATERAL (
        SELECT {id} FROM {table}
        WHERE {is_ready}{in_queue} AND {group} = locked.{group} AND {available_at} <= coalesce(:now, statement_timestamp())
          AND {not_held} AND NOT EXISTS (
              SELECT 1 FROM {table} AS busy WHERE busy.{group} = locked.{group} AND busy.{lease_until} IS NOT NULL)
        ORDER BY {in_group_order} LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
    ) AS item
)
UPDATE {table} SET {taken}, {lease_until} = coalesce(:now, statement_timestamp()) + :lease::bigint * INTERVAL '1 microsecond'
WHERE {id} = ANY(ARRAY(SELECT {id} FROM picked))
RETURNING {given};

-- write claim_ungrouped: claim items without a group
WITH picked AS MATERIALIZED (
    SELECT {id} FROM {table}
    WHERE {is_ready}{in_queue} AND {group} IS NULL AND {available_at} <= coalesce(:now, statement_timestamp()) AND {not_held}
    ORDER BY {in_group_order} LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE {table} SET {taken}, {lease_until} = coalesce(:now, statement_timestamp()) + :lease::bigint * INTERVAL '1 microsecond'
WHERE {id} = ANY(ARRAY(SELECT {id} FROM picked))
RETURNING {given};

-- write settle: settle items, each only if its fence matches; skip rows that another transaction has locked
{settle_unlocked} RETURNING item.{id} AS id, item.{fence} AS fence{handed_over};

-- read still_leased: the given leases whose fence is unchanged
SELECT item.{id} AS id, item.{fence} AS fence FROM jsonb_to_recordset(:held) AS mine (id {id_type}, fence bigint)
JOIN {table} AS item ON item.{id} = mine.id AND item.{fence} = mine.fence AND {is_leased};
