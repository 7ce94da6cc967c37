-- write add: begin an operation on many items
INSERT INTO bulk_operations (id, queue, change, filter, status, created_by, created_at, expected)
VALUES (:id, :queue, :change, :filter, 'running', :by, :now, :expected);

-- read next: the oldest operation that is not finished
SELECT * FROM bulk_operations WHERE status = 'running' ORDER BY created_at, id LIMIT 1;

-- read operation: one operation by id
SELECT * FROM bulk_operations WHERE id = :id;

-- read recent: the newest operations of a queue
SELECT * FROM bulk_operations WHERE queue = :queue ORDER BY created_at DESC, id DESC LIMIT :limit;

-- write take: reserve the next batch; no row means that another process performs it, or that the operation was stopped
UPDATE bulk_operations SET ticket = ticket + 1 WHERE id = :id AND ticket = :ticket AND status = 'running';

-- write advance: record a batch
UPDATE bulk_operations SET seen = seen + :seen, changed = changed + :changed, place_at = :place_at, place_id = :place_id WHERE id = :id;

-- write finish: end an operation
UPDATE bulk_operations SET status = :status, finished_at = :now WHERE id = :id AND status = 'running';

-- write prune: delete operations that ended before :before
DELETE FROM bulk_operations WHERE id IN (
    SELECT id FROM bulk_operations WHERE finished_at < :before ORDER BY finished_at LIMIT :limit
);
