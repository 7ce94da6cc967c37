-- Limited items: those of tasks and stages with limits; "task" means both. ``queue/limits.py`` explains lines; decision 74 explains the protocol.

-- read work on sqlite: each task's running items and starts, whether a due item is not in line yet, and whether a waiting line is due
SELECT task.value ->> 'name' AS name, :now AS "now [TIMESTAMPTZ]",
       (SELECT count(*) FROM {table} INDEXED BY {table}_limited
        WHERE lease_until IS NOT NULL AND limit_key IS NOT NULL AND {limit_name} = task.value ->> 'name') AS running,
       (SELECT count(*) FROM rate_tokens
        WHERE rate_key = task.value ->> 'rate_key' AND counts_at > :now - (task.value ->> 'per')) AS started,
       (SELECT min(counts_at) FROM rate_tokens
        WHERE rate_key = task.value ->> 'rate_key' AND counts_at > :now - (task.value ->> 'per')) AS "first_start [TIMESTAMPTZ]",
       EXISTS (SELECT 1 FROM {table} INDEXED BY {table}_unfiled
               WHERE {is_unfiled} AND {limit_name} = task.value ->> 'name' AND available_at <= :now) AS "is_unfiled [BOOLEAN]",
       EXISTS (SELECT 1 FROM {lines}
               WHERE {lines}.name = task.value ->> 'name' AND next_at <= :now) AS "has_line [BOOLEAN]"
FROM json_each(:tasks) AS task WHERE {not_held};

-- read work on postgres: each task's running items and starts, whether a due item is not in line yet, and whether a waiting line is due
SELECT task.name, coalesce(:now, statement_timestamp()) AS now,
       (SELECT count(*) FROM {table} WHERE lease_until IS NOT NULL AND limit_key IS NOT NULL AND {table}.{limit_name} = task.name) AS running,
       used.started, used.first_start,
       EXISTS (SELECT 1 FROM {table} WHERE {is_unfiled} AND {table}.{limit_name} = task.name
               AND available_at <= coalesce(:now, statement_timestamp())) AS is_unfiled,
       EXISTS (SELECT 1 FROM {lines} AS line WHERE line.name = task.name
               AND line.next_at <= coalesce(:now, statement_timestamp())) AS has_line
FROM jsonb_to_recordset(:tasks) AS task (name text, rate_key text, per bigint) CROSS JOIN LATERAL (
    SELECT count(*) AS started, min(counts_at) AS first_start FROM rate_tokens WHERE rate_key = task.rate_key
    AND counts_at > coalesce(:now, statement_timestamp()) - task.per * INTERVAL '1 microsecond') AS used
WHERE {not_held};

-- write lock on sqlite: no lock is needed, because SQLite has one write transaction at a time
SELECT TRUE AS is_mine, :now AS "now [TIMESTAMPTZ]" WHERE :task IS NOT NULL;

-- write lock on postgres: lock a task until the transaction ends, unless another process is already claiming its items
SELECT pg_try_advisory_xact_lock(hashtext('{lines}'), hashtext(:task)) AS is_mine, coalesce(:now, statement_timestamp()) AS now;

-- write open_lines on sqlite: create the waiting lines that are missing for the items of the next statement
INSERT INTO {lines} (name, limit_key, next_at)
SELECT DISTINCT :task, limit_key, :now FROM (
    SELECT limit_key FROM {table} INDEXED BY {table}_unfiled WHERE {is_unfiled} AND {limit_name} = :task AND available_at <= :now
    ORDER BY available_at, rowid LIMIT :limit) AS item
WHERE TRUE ON CONFLICT DO NOTHING;

-- write open_lines on postgres: unused, because the statement `file` creates the waiting lines
SELECT 1;

-- write file on sqlite: put a bounded number of due items in their waiting lines, and move them to the queue that now serves their task
UPDATE {table} SET in_line = TRUE, {queue} = :queue WHERE rowid IN (
    SELECT rowid FROM {table} INDEXED BY {table}_unfiled WHERE {is_unfiled} AND {limit_name} = :task AND available_at <= :now
    ORDER BY available_at, rowid LIMIT :limit);

-- write file on postgres: put a bounded number of due items in their waiting lines, and move them to the queue that now serves their task
WITH found AS MATERIALIZED (
    SELECT id FROM {table} WHERE {is_unfiled} AND {limit_name} = :task AND available_at <= :now
    ORDER BY available_at LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED
), filed AS (
    UPDATE {table} SET in_line = TRUE, {queue} = :queue WHERE id = ANY(ARRAY(SELECT id FROM found)) RETURNING limit_key
)
INSERT INTO {lines} (name, limit_key, next_at) SELECT DISTINCT :task, limit_key, :now::timestamptz FROM filed
ON CONFLICT DO NOTHING;

-- read lines: a task's due waiting lines that have a free slot, longest wait first, with their running items and starts
SELECT line.limit_key AS limit_key, line.running AS running,
       (SELECT count(*) FROM rate_tokens WHERE rate_key = :rate_key || ':' || line.limit_key AND counts_at > :since_each) AS started,
       (SELECT min(counts_at) FROM rate_tokens
        WHERE rate_key = :rate_key || ':' || line.limit_key AND counts_at > :since_each) AS "first_start [TIMESTAMPTZ]",
       (SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {is_in_line} AND {limit_name} = :task AND limit_key = line.limit_key
                              LIMIT :limit) AS item) AS waiting,
       (SELECT count(*) FROM {table} WHERE lease_until IS NOT NULL AND limit_key IS NOT NULL AND {limit_name} = :task) AS all_running,
       (SELECT count(*) FROM rate_tokens WHERE rate_key = :rate_key AND counts_at > :since) AS all_started
FROM (SELECT limit_key, next_at, (SELECT count(*) FROM {table} WHERE lease_until IS NOT NULL AND {table}.limit_key IS NOT NULL
                                  AND {table}.{limit_name} = :task AND {table}.limit_key = {lines}.limit_key) AS running
      FROM {lines} WHERE name = :task AND next_at <= :now) AS line
WHERE line.running < :at_once OR line.limit_key = ''
ORDER BY line.next_at, line.limit_key LIMIT :limit;

-- read pick_in_line on sqlite: the next items in a waiting line
SELECT json_group_array(item) AS picked FROM (
    SELECT rowid AS item FROM {table} INDEXED BY {table}_in_line WHERE {is_in_line} AND {limit_name} = :task AND limit_key = :key
    ORDER BY priority, available_at, id LIMIT :limit);

-- read pick_in_line on postgres: unused, because the statement `take_in_line` picks the items
SELECT 1;

-- write take_in_line on sqlite: lease the picked items
UPDATE {table} SET {taken}, in_line = FALSE, lease_until = :now + :lease WHERE rowid IN (SELECT value FROM json_each(:picked));

-- write take_in_line on postgres: lease the items that each waiting line may start
WITH picked AS MATERIALIZED (
    SELECT item.id FROM jsonb_to_recordset(:shares) AS share (key text, count bigint) CROSS JOIN LATERAL (
        SELECT id FROM {table} WHERE {is_in_line} AND {limit_name} = :task AND limit_key = share.key
        ORDER BY priority, available_at, id LIMIT share.count FOR NO KEY UPDATE SKIP LOCKED) AS item
)
UPDATE {table} SET {taken}, in_line = FALSE, lease_until = :now::timestamptz + :lease::bigint * INTERVAL '1 microsecond'
WHERE id = ANY(ARRAY(SELECT id FROM picked)) RETURNING {given}, limit_key;

-- write count_starts on sqlite: record the starts of the claimed items, which count against the rates
INSERT INTO rate_tokens (reservation, rate_key, counts_at, confirmed, kept_until)
SELECT start.value ->> 'id', start.value ->> 'rate_key', :now, TRUE, :now + (start.value ->> 'per') FROM json_each(:starts) AS start;

-- write count_starts on postgres: record the starts of the claimed items, which count against the rates
INSERT INTO rate_tokens (reservation, rate_key, counts_at, confirmed, kept_until)
SELECT start.id, start.rate_key, :now, TRUE, :now::timestamptz + start.per * INTERVAL '1 microsecond'
FROM jsonb_to_recordset(:starts) AS start (id uuid, rate_key text, per bigint);

-- write move_lines on sqlite: set when a claim should next visit these waiting lines
UPDATE {lines} SET next_at = line.value ->> 'next_at' FROM json_each(:lines) AS line
WHERE {lines}.name = :task AND {lines}.limit_key = line.value ->> 'key';

-- write move_lines on postgres: set when a claim should next visit these waiting lines
UPDATE {lines} SET next_at = TIMESTAMPTZ 'epoch' + line.next_at * INTERVAL '1 microsecond'
FROM jsonb_to_recordset(:lines) AS line (key text, next_at bigint)
WHERE {lines}.name = :task AND {lines}.limit_key = line.key;

-- write close_lines on sqlite: delete the waiting lines that have no items
DELETE FROM {lines} WHERE name = :task AND limit_key IN (SELECT value FROM json_each(:keys));

-- write close_lines on postgres: delete the waiting lines that have no items
DELETE FROM {lines} WHERE name = :task AND limit_key IN (SELECT jsonb_array_elements_text(:keys));

-- read following on sqlite: when the next item of these tasks becomes due, and when the next item in a waiting line (the due items of one task and key) may start
SELECT (SELECT min(at) FROM (SELECT (SELECT min(available_at) FROM {table} INDEXED BY {table}_unfiled
                                     WHERE {is_unfiled} AND {limit_name} = task.value) AS at
                             FROM json_each(:names) AS task)) AS "item_at [TIMESTAMPTZ]",
       (SELECT min(at) FROM (SELECT (SELECT min(next_at) FROM {lines} WHERE name = task.value) AS at
                             FROM json_each(:names) AS task)) AS "line_at [TIMESTAMPTZ]",
       (SELECT min(at) FROM (SELECT (SELECT min(next_at) FROM {lines} WHERE name = task.value AND next_at > :now) AS at
                             FROM json_each(:names) AS task)) AS "later_at [TIMESTAMPTZ]",
       :now AS "now [TIMESTAMPTZ]";

-- read following on postgres: when the next item of these tasks becomes due, and when the next item in a waiting line (the due items of one task and key) may start
SELECT min(item.at) AS item_at, min(line.at) AS line_at, min(later.at) AS later_at, coalesce(:now, statement_timestamp()) AS now
FROM jsonb_array_elements_text(:names) AS task (name)
CROSS JOIN LATERAL (SELECT min(available_at) AS at FROM {table} WHERE {is_unfiled} AND {table}.{limit_name} = task.name) AS item
CROSS JOIN LATERAL (SELECT min(next_at) AS at FROM {lines} WHERE {lines}.name = task.name) AS line
CROSS JOIN LATERAL (SELECT min(next_at) AS at FROM {lines} WHERE {lines}.name = task.name
                    AND next_at > coalesce(:now, statement_timestamp())) AS later;

-- write label: undo the claim of an item that was enqueued before its task had limits, and give the item its limit key
UPDATE {table} SET {released}, limit_key = :key, in_line = FALSE WHERE id = :id AND fence = :fence AND lease_until IS NOT NULL;

-- read uses on sqlite: running items and starts of these tasks (key NULL) and of these keys, to explain why items are waiting
SELECT asked.value ->> 'name' AS name, asked.value ->> 'key' AS limit_key,
       (SELECT count(*) FROM {table} INDEXED BY {table}_limited
        WHERE lease_until IS NOT NULL AND limit_key IS NOT NULL AND {limit_name} = asked.value ->> 'name'
          AND (asked.value ->> 'key' IS NULL OR limit_key = asked.value ->> 'key')) AS running,
       (SELECT count(*) FROM rate_tokens
        WHERE rate_key = asked.value ->> 'rate_key' AND counts_at > :now - (asked.value ->> 'per')) AS started,
       (SELECT min(counts_at) FROM rate_tokens
        WHERE rate_key = asked.value ->> 'rate_key' AND counts_at > :now - (asked.value ->> 'per')) AS "first_start [TIMESTAMPTZ]"
FROM json_each(:asked) AS asked;

-- read uses on postgres: running items and starts of these tasks (key NULL) and of these keys, to explain why items are waiting
SELECT asked.name, asked.key AS limit_key,
       (SELECT count(*) FROM {table} WHERE lease_until IS NOT NULL AND limit_key IS NOT NULL AND {table}.{limit_name} = asked.name
        AND (asked.key IS NULL OR limit_key = asked.key)) AS running,
       used.started, used.first_start
FROM jsonb_to_recordset(:asked) AS asked (name text, key text, rate_key text, per bigint) CROSS JOIN LATERAL (
    SELECT count(*) AS started, min(counts_at) AS first_start FROM rate_tokens WHERE rate_key = asked.rate_key
    AND counts_at > coalesce(:now, statement_timestamp()) - asked.per * INTERVAL '1 microsecond') AS used;
