-- write add on sqlite: record a restart; the parent identifies its child only by host and pid
INSERT INTO worker_restarts
    (id, at, worker_id, worker_name, loop, reason, detail, stack, exit_code, restarts_in_window, host, pid)
VALUES (:id, coalesce(:now, now()),
        coalesce(:worker_id, (SELECT worker_id FROM worker_heartbeats
                              WHERE host = :host AND pid = :pid AND worker_name = :worker_name
                              ORDER BY started_at DESC LIMIT 1), :otherwise),
        :worker_name, :loop, :reason, :detail, :stack, :exit_code, :restarts_in_window, :host, :pid);

-- write add on postgres: record a restart; the parent identifies its child only by host and pid
INSERT INTO worker_restarts
    (id, at, worker_id, worker_name, loop, reason, detail, stack, exit_code, restarts_in_window, host, pid)
VALUES (:id, coalesce(:now, statement_timestamp()),
        coalesce(:worker_id::text, (SELECT worker_id FROM worker_heartbeats
                                    WHERE host = :host AND pid = :pid AND worker_name = :worker_name
                                    ORDER BY started_at DESC LIMIT 1), :otherwise::text),
        :worker_name, :loop, :reason, :detail, :stack, :exit_code, :restarts_in_window, :host, :pid);

-- read since: every restart since an instant, newest first
SELECT id, at, worker_id, worker_name, loop, reason, detail, stack, exit_code, restarts_in_window, host, pid
FROM worker_restarts WHERE at >= :since ORDER BY at DESC, id DESC LIMIT :limit;

-- write prune: delete a bounded number of old restarts
DELETE FROM worker_restarts WHERE id IN (SELECT id FROM worker_restarts WHERE at < :before LIMIT :limit);
