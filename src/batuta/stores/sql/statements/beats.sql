-- write beat on sqlite: record a heartbeat, and return whether a heartbeat lies in the future, because the clock was set back
INSERT INTO worker_heartbeats (worker_id, worker_name, status, last_heartbeat_at, started_at, loops_status, host, pid, version,
                               rss_bytes, cpu_seconds)
VALUES (:worker_id, :worker_name, :status, coalesce(:now, now()), coalesce(:now, now()), :loops, :host, :pid, :version,
        :rss_bytes, :cpu_seconds)
ON CONFLICT (worker_id) DO UPDATE
SET status = excluded.status, last_heartbeat_at = excluded.last_heartbeat_at, loops_status = excluded.loops_status,
    rss_bytes = excluded.rss_bytes, cpu_seconds = excluded.cpu_seconds, started_at = min(worker_heartbeats.started_at, excluded.started_at)
RETURNING EXISTS (SELECT 1 FROM worker_heartbeats WHERE last_heartbeat_at > coalesce(:now, now()) + 5000000) AS "is_ahead [BOOLEAN]";

-- write beat on postgres: record a heartbeat, and return whether a heartbeat lies in the future, because the clock was set back
INSERT INTO worker_heartbeats (worker_id, worker_name, status, last_heartbeat_at, started_at, loops_status, host, pid, version,
                               rss_bytes, cpu_seconds)
VALUES (:worker_id, :worker_name, :status, coalesce(:now, statement_timestamp()), coalesce(:now, statement_timestamp()), :loops,
        :host, :pid, :version, :rss_bytes, :cpu_seconds)
ON CONFLICT (worker_id) DO UPDATE
SET status = excluded.status, last_heartbeat_at = excluded.last_heartbeat_at, loops_status = excluded.loops_status,
    rss_bytes = excluded.rss_bytes, cpu_seconds = excluded.cpu_seconds, started_at = least(worker_heartbeats.started_at, excluded.started_at)
RETURNING EXISTS (SELECT 1 FROM worker_heartbeats
                  WHERE last_heartbeat_at > coalesce(:now, statement_timestamp()) + INTERVAL '5 seconds') AS is_ahead;

-- write put_back on sqlite: after the clock was set back, move heartbeats from its future to the current time
UPDATE worker_heartbeats
SET last_heartbeat_at = coalesce(:now, now()), started_at = min(started_at, coalesce(:now, now()))
WHERE last_heartbeat_at > coalesce(:now, now()) + 5000000;

-- write put_back on postgres: after the clock was set back, move heartbeats from its future to the current time
UPDATE worker_heartbeats
SET last_heartbeat_at = coalesce(:now, statement_timestamp()), started_at = least(started_at, coalesce(:now, statement_timestamp()))
WHERE last_heartbeat_at > coalesce(:now, statement_timestamp()) + INTERVAL '5 seconds';

-- write stall: mark a process that does not respond, as its parent reports; keep the time of its last heartbeat
UPDATE worker_heartbeats SET status = 'stalled' WHERE host = :host AND pid = :pid AND status <> 'offline';

-- read seen on sqlite: the current time in every row, and every heartbeat in the period before it; at least one row
SELECT coalesce(:now, now()) AS "now [TIMESTAMPTZ]",
       worker_id, worker_name, status, last_heartbeat_at, started_at, loops_status, host, pid, version, rss_bytes, cpu_seconds
FROM (SELECT 1) LEFT JOIN worker_heartbeats ON last_heartbeat_at >= coalesce(:now, now()) - :within;

-- read seen on postgres: the current time in every row, and every heartbeat in the period before it; at least one row
SELECT coalesce(:now, statement_timestamp()) AS now,
       worker_id, worker_name, status, last_heartbeat_at, started_at, loops_status, host, pid, version, rss_bytes, cpu_seconds
FROM (VALUES (1)) AS always(one)
LEFT JOIN worker_heartbeats
    ON last_heartbeat_at >= coalesce(:now, statement_timestamp()) - :within::bigint * INTERVAL '1 microsecond';

-- write prune: delete a bounded number of processes whose last heartbeat is old
DELETE FROM worker_heartbeats WHERE worker_id IN (
    SELECT worker_id FROM worker_heartbeats WHERE last_heartbeat_at < :before LIMIT :limit);
