-- SQLite returns one row at a time, and each row costs a thread switch, so many rows are returned as one value.

-- read columns: the columns of the table and their types; executed once
SELECT name, type FROM pragma_table_info('{table}');

-- read pick: find the next due items, most urgent priority first
SELECT json_group_array(item) AS picked FROM ({pick_in_order});

-- read pick_reversed: find the next due items, least urgent priority first
SELECT json_group_array(item) AS picked FROM ({pick_in_reverse});

-- write take: lease the picked items
UPDATE {table} SET {taken}, {lease_until} = {now} + :lease WHERE rowid IN (SELECT value FROM json_each(:picked));

-- read taken: the claimed rows in the order in which they were picked, as a single bytes value, because a text may be invalid UTF-8
SELECT CAST(json_group_array(json_array({packed})) AS BLOB) AS items
FROM json_each(:picked) AS place CROSS JOIN {table} AS item ON item.rowid = place.value;

-- read ours: the settlements whose item still has the same fence and lease
SELECT json_group_array(ending.key) AS places
FROM json_each(:endings) AS ending CROSS JOIN {table}
WHERE {table}.{id} = ending.value ->> 'id' AND {table}.{fence} = ending.value ->> 'fence' AND {table}.{lease_until} IS NOT NULL;

-- read somewhere: a random group that has a waiting item
WITH RECURSIVE {groups_from_the_first}
SELECT value FROM groups WHERE value IS NOT NULL ORDER BY random() LIMIT 1;

-- read pick_in_turn: one item of each group without a running item, with the groups in round robin; checks no more groups than
-- needed
SELECT json_group_array(item) AS picked FROM (SELECT item FROM (
    WITH RECURSIVE {groups_in_turn}
    SELECT (SELECT rowid FROM {table} INDEXED BY {ready_index}
            WHERE {is_ready}{in_queue} AND {group} = groups.value AND {available_at} <= (SELECT coalesce(:now, now())) AND {not_held}
            ORDER BY {in_group_order} LIMIT 1) AS item
    FROM groups
    WHERE groups.value IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM {table} AS busy WHERE busy.{group} = groups.value AND busy.{lease_until} IS NOT NULL))
WHERE item IS NOT NULL LIMIT :limit);

-- read pick_ungrouped: find the next due items that have no group
SELECT json_group_array(item) AS picked FROM (
    SELECT rowid AS item FROM {table} INDEXED BY {ready_index}
    WHERE {is_ready}{in_queue} AND {group} IS NULL AND {available_at} <= (SELECT coalesce(:now, now())) AND {not_held}
    ORDER BY {in_group_order} LIMIT :limit);

-- write settle: settle items, each only if its fence matches
{settle};

-- write settle_successes: settle items that have the same fence as done; the number of affected rows shows whether a lease was lost
{settle_successes};
