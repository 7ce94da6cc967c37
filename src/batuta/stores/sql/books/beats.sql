-- write beat on sqlite: a sign of life
INSERT INTO worker_heartbeats (worker_id, worker_name, status, last_heartbeat_at, started_at, loops_status, host, pid, version)
VALUES (:worker_id, :worker_name, :status, coalesce(:now, now()), coalesce(:now, now()), :loops, :host, :pid, :version)
ON CONFLICT (worker_id) DO UPDATE
SET status = excluded.status, last_heartbeat_at = excluded.last_heartbeat_at, loops_status = excluded.loops_status;

-- write beat on postgres: a sign of life
INSERT INTO worker_heartbeats (worker_id, worker_name, status, last_heartbeat_at, started_at, loops_status, host, pid, version)
VALUES (:worker_id, :worker_name, :status, coalesce(:now, statement_timestamp()), coalesce(:now, statement_timestamp()), :loops,
        :host, :pid, :version)
ON CONFLICT (worker_id) DO UPDATE
SET status = excluded.status, last_heartbeat_at = excluded.last_heartbeat_at, loops_status = excluded.loops_status;

-- read seen: every sign of life since an instant
SELECT worker_id, worker_name, status, last_heartbeat_at, started_at, loops_status FROM worker_heartbeats
WHERE last_heartbeat_at >= :since;

-- read time on sqlite: the time that decides
SELECT coalesce(:now, now()) AS "now [TIMESTAMPTZ]";

-- read time on postgres: the time that decides
SELECT coalesce(:now, statement_timestamp()) AS now;

-- write forget: processes that ended long ago
DELETE FROM worker_heartbeats WHERE last_heartbeat_at < :before;
