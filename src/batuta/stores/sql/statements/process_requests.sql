-- write add on sqlite: ask a process to do something
INSERT INTO process_requests (id, worker_id, request, asked_by, asked_at) VALUES (:id, :worker_id, :request, :by, :now);

-- write add on postgres: ask a process to do something, and notify every process
WITH sent AS (SELECT pg_notify('batuta', 'process-requests'))
INSERT INTO process_requests (id, worker_id, request, asked_by, asked_at)
SELECT :id::uuid, :worker_id, :request, :by, :now::timestamptz FROM sent;

-- read open: requests that their process has not taken yet
SELECT id, worker_id, request, asked_by, asked_at, taken_at, stack FROM process_requests
WHERE worker_id = :worker_id AND taken_at IS NULL ORDER BY asked_at, id;

-- write take: mark a request as taken by its process
UPDATE process_requests SET taken_at = :now, stack = :stack WHERE id = :id AND taken_at IS NULL;

-- read since: every request since an instant, newest first
SELECT id, worker_id, request, asked_by, asked_at, taken_at, stack FROM process_requests
WHERE asked_at >= :since ORDER BY asked_at DESC, id DESC LIMIT :limit;

-- write prune: delete a bounded number of old requests
DELETE FROM process_requests WHERE id IN (SELECT id FROM process_requests WHERE asked_at < :before LIMIT :limit);
