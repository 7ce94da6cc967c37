-- Batches and tasks that wait for other tasks. ``stores/sql/queue/batches.py`` explains them; decision 90 explains the protocol.

-- write add: create a batch
INSERT INTO batches (id, name, members, created_at) VALUES (:id, :name, :members, :now);

-- write set_on_end: record the task that runs when the batch has ended
UPDATE batches SET on_end = :task, takes_progress = :takes_progress WHERE id = :id;

-- write close: close a batch; it ends with its last task
UPDATE batches SET closed_at = :now WHERE id = :id AND closed_at IS NULL;

-- write cancel: cancel a batch; the next statement cancels its tasks
UPDATE batches SET cancelled_at = :now, reason = :reason, closed_at = coalesce(closed_at, :now)
WHERE id = :id AND ended_at IS NULL AND cancelled_at IS NULL;

-- read members_of: the kind of records that a batch has in addition to its tasks
SELECT members FROM batches WHERE id = :id;

-- read closed: closed batches with records of the program
SELECT id, members, reason, cancelled_at IS NOT NULL AS "is_cancelled [BOOLEAN]"
FROM batches WHERE ended_at IS NULL AND closed_at IS NOT NULL AND members IS NOT NULL ORDER BY created_at;

-- write cancel_tasks on sqlite: cancel a bounded number of tasks of a batch, or request it for running tasks
UPDATE tasks SET {unwanted} WHERE id IN (
    SELECT id FROM tasks WHERE batch_id = :id AND batch_id IS NOT NULL AND status IN ('queued', 'in_progress') AND NOT cancel_requested
    LIMIT :limit);

-- write cancel_tasks on postgres: cancel a bounded number of tasks of a batch, or request it for running tasks; skip locked rows
UPDATE tasks SET {unwanted} WHERE id IN (
    SELECT id FROM tasks WHERE batch_id = :id AND status IN ('queued', 'in_progress') AND NOT cancel_requested
    LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED);

-- read pending: which kinds of work batches and waiting tasks need now
SELECT EXISTS (SELECT 1 FROM batches WHERE ended_at IS NULL) AS "has_batches [BOOLEAN]",
       EXISTS (SELECT 1 FROM batches WHERE ended_at IS NULL AND closed_at IS NOT NULL AND members IS NOT NULL) AS "has_members [BOOLEAN]",
       EXISTS (SELECT 1 FROM task_waits) AS "has_waits [BOOLEAN]",
       EXISTS (SELECT 1 FROM batches AS batch WHERE ended_at IS NULL AND cancelled_at IS NOT NULL AND EXISTS (
           SELECT 1 FROM tasks WHERE batch_id = batch.id AND batch_id IS NOT NULL AND status IN ('queued', 'in_progress')
           AND NOT cancel_requested)) AS "has_cancelled [BOOLEAN]",
       EXISTS (SELECT 1 FROM batches AS batch WHERE ended_at IS NULL AND closed_at IS NOT NULL AND NOT EXISTS (
           SELECT 1 FROM tasks WHERE batch_id = batch.id AND batch_id IS NOT NULL
           AND status IN ('queued', 'in_progress')) AND members IS NULL) AS "has_ended [BOOLEAN]",
       EXISTS (SELECT 1 FROM task_waits AS wait
               LEFT JOIN tasks AS target ON target.id = wait.for_id LEFT JOIN batches AS batch ON batch.id = wait.for_id
               WHERE batch.ended_at IS NOT NULL
                  OR (batch.id IS NULL AND (target.id IS NULL OR target.finished_at IS NOT NULL))) AS "has_resolved [BOOLEAN]";

-- write lock on sqlite: no lock is needed, because SQLite has one write transaction at a time
SELECT TRUE AS is_mine;

-- write lock on postgres: let one process at a time end batches and release tasks
SELECT pg_try_advisory_xact_lock(hashtext('batuta.task_waits')) AS is_mine;

-- read cancelled: cancelled batches that have tasks to cancel
SELECT id, reason FROM batches AS batch WHERE ended_at IS NULL AND cancelled_at IS NOT NULL AND EXISTS (
    SELECT 1 FROM tasks WHERE batch_id = batch.id AND batch_id IS NOT NULL AND status IN ('queued', 'in_progress')
    AND NOT cancel_requested)
ORDER BY created_at LIMIT :limit;

-- write ended on sqlite: closed batches whose tasks have ended
SELECT id, members FROM batches AS batch WHERE ended_at IS NULL AND closed_at IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM tasks WHERE batch_id = batch.id AND batch_id IS NOT NULL AND status IN ('queued', 'in_progress'))
  AND (members IS NULL OR id IN (SELECT value FROM json_each(:without_unfinished)))
ORDER BY created_at LIMIT :limit;

-- write ended on postgres: closed batches whose tasks have ended; skip those to which a transaction adds tasks
SELECT id, members FROM batches AS batch WHERE ended_at IS NULL AND closed_at IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM tasks WHERE batch_id = batch.id AND status IN ('queued', 'in_progress'))
  AND (members IS NULL OR id IN (SELECT jsonb_array_elements_text(:without_unfinished)::uuid))
ORDER BY created_at LIMIT :limit FOR UPDATE SKIP LOCKED;

-- write end: store the end of a locked batch and its counts, unless a task was added before it was locked
UPDATE batches SET ended_at = :now,
    succeeded = :succeeded + (SELECT count(*) FROM tasks WHERE batch_id = :id AND batch_id IS NOT NULL AND status = 'complete'),
    failed = :failed + (SELECT count(*) FROM tasks WHERE batch_id = :id AND batch_id IS NOT NULL AND status = 'failed'),
    cancelled = :cancelled + (SELECT count(*) FROM tasks WHERE batch_id = :id AND batch_id IS NOT NULL AND status = 'cancelled')
WHERE id = :id AND ended_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM tasks WHERE batch_id = :id AND batch_id IS NOT NULL AND status IN ('queued', 'in_progress'));

-- write give_progress on sqlite: store the counts of a batch as the argument of its task on_end
UPDATE tasks SET args = json_set(args, '$[0]', json(:arguments)) WHERE id = :id AND {is_waiting};

-- write give_progress on postgres: store the counts of a batch as the argument of its task on_end
UPDATE tasks SET args = jsonb_set(args, '{{0}}', :arguments) WHERE id = :id AND {is_waiting};

-- write resolved on sqlite: waits for tasks and batches that have ended or do not exist
SELECT wait.task_id, wait.for_id, wait.runs_anyway, wait.due_at, held.queue,
       coalesce(batch.name, target.name) AS name, target.status AS ended_as, batch.id IS NOT NULL AS "is_batch [BOOLEAN]",
       coalesce(batch.failed + batch.cancelled = 0 AND batch.cancelled_at IS NULL, FALSE) AS "batch_succeeded [BOOLEAN]"
FROM task_waits AS wait CROSS JOIN tasks AS held ON held.id = wait.task_id
LEFT JOIN tasks AS target ON target.id = wait.for_id LEFT JOIN batches AS batch ON batch.id = wait.for_id
WHERE batch.ended_at IS NOT NULL OR (batch.id IS NULL AND (target.id IS NULL OR target.finished_at IS NOT NULL))
LIMIT :limit;

-- write resolved on postgres: waits for tasks and batches that have ended or do not exist; skip waiting tasks that are locked
SELECT wait.task_id, wait.for_id, wait.runs_anyway, wait.due_at, held.queue,
       coalesce(batch.name, target.name) AS name, target.status AS ended_as, batch.id IS NOT NULL AS is_batch,
       coalesce(batch.failed + batch.cancelled = 0 AND batch.cancelled_at IS NULL, FALSE) AS batch_succeeded
FROM task_waits AS wait JOIN tasks AS held ON held.id = wait.task_id
LEFT JOIN tasks AS target ON target.id = wait.for_id LEFT JOIN batches AS batch ON batch.id = wait.for_id
WHERE batch.ended_at IS NOT NULL OR (batch.id IS NULL AND (target.id IS NULL OR target.finished_at IS NOT NULL))
LIMIT :limit FOR NO KEY UPDATE OF held SKIP LOCKED;

-- write drop_waits on sqlite: delete the waits of tasks that are cancelled
DELETE FROM task_waits WHERE task_id IN (SELECT value FROM json_each(:ids));

-- write drop_waits on postgres: delete the waits of tasks that are cancelled
DELETE FROM task_waits WHERE task_id IN (SELECT jsonb_array_elements_text(:ids)::uuid);

-- write keep_input: keep the result of an awaited task or batch for the task that waited for it
INSERT INTO task_inputs (for_id, task_id) VALUES (:target, :task) ON CONFLICT DO NOTHING;

-- write drop_wait: delete a wait that is over
DELETE FROM task_waits WHERE task_id = :task AND for_id = :target;

-- write cancel_waiting: cancel a task that waits for another one
UPDATE tasks SET {dropped} WHERE id = :id AND {is_waiting};

-- write release on sqlite: make a task due whose waits are all over
UPDATE tasks SET available_at = max(coalesce(:now, now()), :due_at)
WHERE id = :id AND {is_waiting} AND NOT EXISTS (SELECT 1 FROM task_waits WHERE task_id = :id);

-- write release on postgres: make a task due whose waits are all over
UPDATE tasks SET available_at = greatest(coalesce(:now, statement_timestamp()), :due_at)
WHERE id = :id AND {is_waiting} AND NOT EXISTS (SELECT 1 FROM task_waits WHERE task_id = :id);

-- write announce on sqlite: unused, because SQLite has no notifications
SELECT 1 WHERE :name IS NOT NULL;

-- write announce on postgres: notify every process
SELECT pg_notify('batuta', :name);

-- read batch: a batch with its counts
SELECT batch.id, batch.name, batch.on_end, batch.takes_progress, batch.created_at, batch.closed_at, batch.cancelled_at,
       batch.reason, batch.ended_at, batch.members,
       count(task.id) FILTER (WHERE task.status = 'queued') AS waiting,
       count(task.id) FILTER (WHERE task.status = 'in_progress') AS running,
       coalesce(batch.succeeded, count(task.id) FILTER (WHERE task.status = 'complete')) AS succeeded,
       coalesce(batch.failed, count(task.id) FILTER (WHERE task.status = 'failed')) AS failed,
       coalesce(batch.cancelled, count(task.id) FILTER (WHERE task.status = 'cancelled')) AS cancelled
FROM batches AS batch
LEFT JOIN tasks AS task ON task.batch_id = batch.id AND task.batch_id IS NOT NULL AND batch.ended_at IS NULL
WHERE batch.id = :id GROUP BY batch.id;

-- read batches: the newest batches with their counts
SELECT batch.id, batch.name, batch.on_end, batch.takes_progress, batch.created_at, batch.closed_at, batch.cancelled_at,
       batch.reason, batch.ended_at, batch.members,
       count(task.id) FILTER (WHERE task.status = 'queued') AS waiting,
       count(task.id) FILTER (WHERE task.status = 'in_progress') AS running,
       coalesce(batch.succeeded, count(task.id) FILTER (WHERE task.status = 'complete')) AS succeeded,
       coalesce(batch.failed, count(task.id) FILTER (WHERE task.status = 'failed')) AS failed,
       coalesce(batch.cancelled, count(task.id) FILTER (WHERE task.status = 'cancelled')) AS cancelled
FROM batches AS batch
LEFT JOIN tasks AS task ON task.batch_id = batch.id AND task.batch_id IS NOT NULL AND batch.ended_at IS NULL
WHERE batch.id IN (SELECT id FROM batches ORDER BY created_at DESC, id DESC LIMIT :limit)
GROUP BY batch.id ORDER BY batch.created_at DESC, batch.id DESC;

-- read abandoned: batches created before :before that are still open, although all their tasks and pipeline items have ended
SELECT id, name, created_at FROM batches AS batch
WHERE ended_at IS NULL AND closed_at IS NULL AND coalesce(members, 'pipeline_items') = 'pipeline_items' AND created_at < :before
  AND NOT EXISTS (SELECT 1 FROM tasks WHERE batch_id = batch.id AND batch_id IS NOT NULL AND status IN ('queued', 'in_progress'))
  AND NOT EXISTS (SELECT 1 FROM pipeline_items WHERE batch_id = batch.id AND batch_id IS NOT NULL AND finished_at IS NULL)
ORDER BY created_at LIMIT :limit;

-- read waits_of on sqlite: the tasks and batches that these tasks wait for
SELECT wait.task_id, count(*) OVER (PARTITION BY wait.task_id) AS count, wait.for_id,
       coalesce(batch.name, target.name) AS name, batch.id IS NOT NULL AS "is_batch [BOOLEAN]"
FROM task_waits AS wait LEFT JOIN tasks AS target ON target.id = wait.for_id LEFT JOIN batches AS batch ON batch.id = wait.for_id
WHERE wait.task_id IN (SELECT value FROM json_each(:ids)) ORDER BY wait.task_id, wait.for_id;

-- read waits_of on postgres: the tasks and batches that these tasks wait for
SELECT wait.task_id, count(*) OVER (PARTITION BY wait.task_id) AS count, wait.for_id,
       coalesce(batch.name, target.name) AS name, batch.id IS NOT NULL AS is_batch
FROM task_waits AS wait LEFT JOIN tasks AS target ON target.id = wait.for_id LEFT JOIN batches AS batch ON batch.id = wait.for_id
WHERE wait.task_id IN (SELECT jsonb_array_elements_text(:ids)::uuid) ORDER BY wait.task_id, wait.for_id;

-- write prune_tasks on sqlite: delete a bounded number of tasks whose batch has ended and whose retention has ended
DELETE FROM tasks WHERE id IN (
    SELECT task.id FROM batches AS batch CROSS JOIN tasks AS task
    WHERE batch.ended_at IS NOT NULL AND task.batch_id = batch.id AND task.batch_id IS NOT NULL
      AND task.expires_at IS NOT NULL AND task.expires_at <= coalesce(:now, now()) AND task.finished_at IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM task_waits WHERE for_id = task.id)
      AND NOT EXISTS (SELECT 1 FROM task_inputs AS input CROSS JOIN tasks AS reader ON reader.id = input.task_id
                      WHERE input.for_id IN (task.id, batch.id) AND reader.status IN ('queued', 'in_progress'))
    LIMIT :limit);

-- write prune_tasks on postgres: delete a bounded number of tasks whose batch has ended and whose retention has ended
DELETE FROM tasks WHERE id IN (
    SELECT task.id FROM batches AS batch JOIN tasks AS task ON task.batch_id = batch.id
    WHERE batch.ended_at IS NOT NULL
      AND task.expires_at IS NOT NULL AND task.expires_at <= coalesce(:now, statement_timestamp()) AND task.finished_at IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM task_waits WHERE for_id = task.id)
      AND NOT EXISTS (SELECT 1 FROM task_inputs AS input JOIN tasks AS reader ON reader.id = input.task_id
                      WHERE input.for_id IN (task.id, batch.id) AND reader.status IN ('queued', 'in_progress'))
    LIMIT :limit FOR UPDATE OF task SKIP LOCKED);

-- write prune_waits on sqlite: delete a bounded number of waits of tasks that no longer exist
DELETE FROM task_waits WHERE rowid IN (
    SELECT wait.rowid FROM task_waits AS wait WHERE NOT EXISTS (SELECT 1 FROM tasks WHERE id = wait.task_id) LIMIT :limit);

-- write prune_waits on postgres: delete a bounded number of waits of tasks that no longer exist
DELETE FROM task_waits WHERE (task_id, for_id) IN (
    SELECT task_id, for_id FROM task_waits AS wait WHERE NOT EXISTS (SELECT 1 FROM tasks WHERE id = wait.task_id) LIMIT :limit);

-- write prune_inputs on sqlite: delete a bounded number of references to the inputs of tasks that have ended
DELETE FROM task_inputs WHERE rowid IN (
    SELECT input.rowid FROM task_inputs AS input
    WHERE NOT EXISTS (SELECT 1 FROM tasks WHERE id = input.task_id AND status IN ('queued', 'in_progress')) LIMIT :limit);

-- write prune_inputs on postgres: delete a bounded number of references to the inputs of tasks that have ended
DELETE FROM task_inputs WHERE (for_id, task_id) IN (
    SELECT for_id, task_id FROM task_inputs AS input
    WHERE NOT EXISTS (SELECT 1 FROM tasks WHERE id = input.task_id AND status IN ('queued', 'in_progress')) LIMIT :limit);

-- write prune: delete a bounded number of batches that ended before :before and have no tasks any more
DELETE FROM batches WHERE id IN (
    SELECT id FROM batches AS batch WHERE ended_at IS NOT NULL AND ended_at < :before
      AND NOT EXISTS (SELECT 1 FROM tasks WHERE batch_id = batch.id AND batch_id IS NOT NULL)
      AND NOT EXISTS (SELECT 1 FROM task_waits WHERE for_id = batch.id)
    ORDER BY ended_at LIMIT :limit);
