-- write beat: a sign of life
INSERT INTO worker_heartbeats (worker_id, worker_name, status, last_heartbeat_at, started_at, loops_status, host, pid, version)
VALUES (:worker_id, :worker_name, :status, :now, :now, :loops, :host, :pid, :version)
ON CONFLICT (worker_id) DO UPDATE
SET status = excluded.status, last_heartbeat_at = excluded.last_heartbeat_at, loops_status = excluded.loops_status;
