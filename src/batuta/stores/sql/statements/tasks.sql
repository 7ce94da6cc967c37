-- write put_calls on sqlite: unused, because SQLite inserts calls like any other items
SELECT 1;

-- write put_calls on postgres: insert calls of one task that are due now and have no key; ``carried`` is appended to each call
WITH accepted AS (
    INSERT INTO tasks (id, queue, name, priority, args, created_at, available_at)
    SELECT call.id, :queue, :name, :priority, call.args || :carried::jsonb,
           coalesce(:now, statement_timestamp()), coalesce(:now, statement_timestamp())
    FROM ROWS FROM (unnest(string_to_array(:ids, ',')::uuid[]), jsonb_array_elements(:calls)) AS call (id, args)
)
SELECT pg_notify('batuta', :queue);

-- read next_due on sqlite: the time at which the next item in each queue is due
SELECT queue.value AS queue, coalesce(:now, now()) AS "now [TIMESTAMPTZ]",
       (SELECT available_at FROM tasks INDEXED BY tasks_due
        WHERE tasks.queue = queue.value AND status = 'queued' AND lease_until IS NULL AND limit_key IS NULL
          AND typeof(available_at) = 'integer' ORDER BY available_at LIMIT 1) AS "at [TIMESTAMPTZ]"
FROM json_each(:queues) AS queue;

-- read next_due on postgres: the time at which the next item in each queue is due
SELECT queue.name AS queue, coalesce(:now, statement_timestamp()) AS now,
       (SELECT available_at FROM tasks
        WHERE tasks.queue = queue.name AND status = 'queued' AND lease_until IS NULL AND limit_key IS NULL
          AND available_at < 'infinity' ORDER BY available_at LIMIT 1) AS at
FROM jsonb_array_elements_text(:queues) AS queue (name);

-- read occupied on sqlite: the queues of ``queues`` that contain a waiting, running or failed task, except tasks in a limit's line
SELECT queue.value AS queue FROM json_each(:queues) AS queue
WHERE EXISTS (SELECT 1 FROM tasks INDEXED BY tasks_ready
              WHERE tasks.queue = queue.value AND status = 'queued' AND lease_until IS NULL AND limit_key IS NULL)
   OR EXISTS (SELECT 1 FROM tasks INDEXED BY tasks_dead WHERE tasks.queue = queue.value AND status = 'failed')
   OR queue.value IN (SELECT tasks.queue FROM tasks INDEXED BY tasks_leased WHERE lease_until IS NOT NULL)
   OR queue.value IN (SELECT tasks.queue FROM tasks INDEXED BY tasks_unfiled
                      WHERE status = 'queued' AND lease_until IS NULL AND limit_key IS NOT NULL AND NOT in_line);

-- read occupied on postgres: the queues of ``queues`` that contain a waiting, running or failed task, except tasks in a limit's line
SELECT queue.name AS queue FROM jsonb_array_elements_text(:queues) AS queue (name)
WHERE EXISTS (SELECT 1 FROM tasks
              WHERE tasks.queue = queue.name AND status = 'queued' AND lease_until IS NULL AND limit_key IS NULL)
   OR EXISTS (SELECT 1 FROM tasks WHERE tasks.queue = queue.name AND status = 'failed')
   OR queue.name IN (SELECT tasks.queue FROM tasks WHERE lease_until IS NOT NULL)
   OR queue.name IN (SELECT tasks.queue FROM tasks
                     WHERE status = 'queued' AND lease_until IS NULL AND limit_key IS NOT NULL AND NOT in_line);

-- read alive: the unfinished task with this name and key
SELECT id FROM tasks WHERE name = :name AND unique_key = :key AND status IN ('queued', 'in_progress');

-- read task on sqlite: one task, and whether its retention has ended; an input of an unfinished task is kept
SELECT id, queue, name, status, created_at, started_at, finished_at, attempts, result, error, progress, tags,
       unique_key,
       coalesce(expires_at <= coalesce(:now, now()), FALSE)
       AND NOT EXISTS (SELECT 1 FROM task_inputs AS input CROSS JOIN tasks AS reader ON reader.id = input.task_id
                       WHERE input.for_id IN (tasks.id, tasks.batch_id) AND reader.status IN ('queued', 'in_progress')) AS "is_over [BOOLEAN]"
FROM tasks WHERE id = :id;

-- read task on postgres: one task, and whether its retention has ended; an input of an unfinished task is kept
SELECT id, queue, name, status, created_at, started_at, finished_at, attempts, result, error, progress, tags,
       unique_key,
       coalesce(expires_at <= coalesce(:now, statement_timestamp()), FALSE)
       AND NOT EXISTS (SELECT 1 FROM task_inputs AS input JOIN tasks AS reader ON reader.id = input.task_id
                       WHERE input.for_id IN (tasks.id, tasks.batch_id) AND reader.status IN ('queued', 'in_progress')) AS is_over
FROM tasks WHERE id = :id;

-- read unserved on sqlite: waiting tasks of queues that are not in ``served``; jumps from queue to queue in the index
WITH RECURSIVE queues(value) AS (
    SELECT (SELECT min(queue) FROM tasks INDEXED BY tasks_ready
            WHERE status = 'queued' AND lease_until IS NULL AND limit_key IS NULL)
    UNION ALL
    SELECT (SELECT min(queue) FROM tasks INDEXED BY tasks_ready
            WHERE status = 'queued' AND lease_until IS NULL AND limit_key IS NULL AND queue > queues.value)
    FROM queues WHERE value IS NOT NULL
)
SELECT task.queue AS queue, task.name AS name, count(*) AS items, min(task.available_at) AS "oldest [TIMESTAMPTZ]"
FROM queues CROSS JOIN tasks AS task INDEXED BY tasks_ready
WHERE queues.value NOT IN (SELECT value FROM json_each(:served))
  AND task.queue = queues.value AND task.status = 'queued' AND task.lease_until IS NULL AND task.limit_key IS NULL
GROUP BY task.queue, task.name ORDER BY task.queue, task.name;

-- read unserved on postgres: waiting tasks of queues that are not in ``served``; jumps from queue to queue in the index
WITH RECURSIVE queues(value) AS (
    SELECT (SELECT min(queue) FROM tasks WHERE status = 'queued' AND lease_until IS NULL AND limit_key IS NULL)
    UNION ALL
    SELECT (SELECT min(queue) FROM tasks
            WHERE status = 'queued' AND lease_until IS NULL AND limit_key IS NULL AND queue > queues.value)
    FROM queues WHERE value IS NOT NULL
)
SELECT queues.value AS queue, waiting.name, waiting.items, waiting.oldest FROM queues CROSS JOIN LATERAL (
    SELECT name, count(*) AS items, min(available_at) AS oldest FROM tasks
    WHERE queue = queues.value AND status = 'queued' AND lease_until IS NULL AND limit_key IS NULL GROUP BY name
) AS waiting
WHERE queues.value IS NOT NULL AND queues.value NOT IN (SELECT jsonb_array_elements_text(:served))
ORDER BY queues.value, waiting.name;

-- write rehome on sqlite: move a bounded number of waiting tasks to the queue that serves them
UPDATE tasks SET queue = :target
WHERE id IN (SELECT id FROM tasks INDEXED BY tasks_ready
             WHERE status = 'queued' AND lease_until IS NULL AND limit_key IS NULL AND queue = :source AND name = :name
             LIMIT :limit);

-- write rehome on postgres: move a bounded number of waiting tasks to the queue that serves them
UPDATE tasks SET queue = :target
WHERE id IN (SELECT id FROM tasks
             WHERE status = 'queued' AND lease_until IS NULL AND limit_key IS NULL AND queue = :source AND name = :name
             LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED);

-- write report: store progress, unless another worker holds the lease
UPDATE tasks SET progress = :progress WHERE id = :id AND fence = :fence AND lease_until IS NOT NULL;

-- write report_of_call: store the progress of a call that ARQ runs, regardless of which relay holds the lease
UPDATE tasks SET progress = :progress WHERE id = :id AND finished_at IS NULL;

-- read wanted on sqlite: the given tasks that have neither ended nor been cancelled
SELECT id FROM tasks WHERE id IN (SELECT value FROM json_each(:ids)) AND status IN ('queued', 'in_progress') AND NOT cancel_requested;

-- read wanted on postgres: the given tasks that have neither ended nor been cancelled
SELECT id FROM tasks WHERE id IN (SELECT jsonb_array_elements_text(:ids)::uuid)
  AND status IN ('queued', 'in_progress') AND NOT cancel_requested;

-- write prune on sqlite: delete a bounded number of tasks whose retention has ended, and which no unfinished task names in ``after``
DELETE FROM tasks WHERE id IN (SELECT id FROM tasks WHERE expires_at <= coalesce(:now, now()) AND expires_at IS NOT NULL
                               AND batch_id IS NULL AND finished_at IS NOT NULL
                               AND NOT EXISTS (SELECT 1 FROM task_waits WHERE for_id = tasks.id)
                               AND NOT EXISTS (SELECT 1 FROM task_inputs AS input CROSS JOIN tasks AS reader ON reader.id = input.task_id
                                               WHERE input.for_id = tasks.id AND reader.status IN ('queued', 'in_progress'))
                               ORDER BY expires_at LIMIT :limit);

-- write prune on postgres: delete a bounded number of tasks whose retention has ended, and which no unfinished task names in ``after``
DELETE FROM tasks WHERE id IN (SELECT id FROM tasks WHERE expires_at <= coalesce(:now, statement_timestamp())
                               AND expires_at IS NOT NULL AND batch_id IS NULL AND finished_at IS NOT NULL
                               AND NOT EXISTS (SELECT 1 FROM task_waits WHERE for_id = tasks.id)
                               AND NOT EXISTS (SELECT 1 FROM task_inputs AS input JOIN tasks AS reader ON reader.id = input.task_id
                                               WHERE input.for_id = tasks.id AND reader.status IN ('queued', 'in_progress'))
                               ORDER BY expires_at LIMIT :limit FOR UPDATE SKIP LOCKED);

-- write await_end on sqlite: unused, because SQLite has no notifications
SELECT 1;

-- write await_end on postgres: request a notification of the end of a task
UPDATE tasks SET awaited = TRUE WHERE id = :id AND status IN ('queued', 'in_progress') AND NOT awaited;

-- read unfinished on sqlite: the given tasks and batches that have not ended
SELECT id FROM tasks WHERE id IN (SELECT value FROM json_each(:ids)) AND status IN ('queued', 'in_progress')
UNION ALL SELECT id FROM batches WHERE id IN (SELECT value FROM json_each(:ids)) AND ended_at IS NULL;

-- read unfinished on postgres: the given tasks and batches that have not ended
SELECT id FROM tasks WHERE id IN (SELECT jsonb_array_elements_text(:ids)::uuid) AND status IN ('queued', 'in_progress')
UNION ALL SELECT id FROM batches WHERE id IN (SELECT jsonb_array_elements_text(:ids)::uuid) AND ended_at IS NULL;

-- read tagged on sqlite: the newest tasks of a queue with a tag
SELECT * FROM tasks INDEXED BY tasks_tagged
WHERE tags IS NOT NULL AND queue = :queue AND EXISTS (SELECT 1 FROM json_each(tags) AS tag WHERE tag.value = :tag ->> 0)
ORDER BY created_at DESC, id DESC LIMIT :limit;

-- read tagged on postgres: the newest tasks of a queue with a tag
SELECT * FROM tasks WHERE tags IS NOT NULL AND tags @> :tag AND queue = :queue ORDER BY created_at DESC, id DESC LIMIT :limit;

-- read keyed: the newest tasks of a queue with a key
SELECT * FROM tasks WHERE unique_key = :key AND unique_key IS NOT NULL AND queue = :queue
ORDER BY created_at DESC, id DESC LIMIT :limit;

-- write unlabel on sqlite: clear the limit key of a bounded number of waiting items whose task has no limits any more
UPDATE tasks SET limit_key = NULL, in_line = FALSE WHERE id IN (
    WITH RECURSIVE names(value) AS (
        SELECT (SELECT min(name) FROM tasks WHERE status = 'queued' AND lease_until IS NULL AND limit_key IS NOT NULL AND NOT in_line)
        UNION ALL
        SELECT (SELECT min(name) FROM tasks WHERE status = 'queued' AND lease_until IS NULL AND limit_key IS NOT NULL AND NOT in_line
                AND name > names.value) FROM names WHERE value IS NOT NULL
    ), lines(value) AS (
        SELECT (SELECT min(name) FROM task_lines) UNION ALL
        SELECT (SELECT min(name) FROM task_lines WHERE name > lines.value) FROM lines WHERE value IS NOT NULL
    )
    SELECT id FROM (SELECT value FROM names UNION SELECT value FROM lines) AS found CROSS JOIN tasks ON name = found.value
    WHERE found.value NOT IN (SELECT value FROM json_each(:limited))
      AND status = 'queued' AND lease_until IS NULL AND limit_key IS NOT NULL LIMIT :limit);

-- write unlabel on postgres: clear the limit key of a bounded number of waiting items whose task has no limits any more
WITH RECURSIVE names(value) AS (
    SELECT (SELECT min(name) FROM tasks WHERE status = 'queued' AND lease_until IS NULL AND limit_key IS NOT NULL AND NOT in_line)
    UNION ALL
    SELECT (SELECT min(name) FROM tasks WHERE status = 'queued' AND lease_until IS NULL AND limit_key IS NOT NULL AND NOT in_line
            AND name > names.value) FROM names WHERE value IS NOT NULL
), lines(value) AS (
    SELECT (SELECT min(name) FROM task_lines) UNION ALL
    SELECT (SELECT min(name) FROM task_lines WHERE name > lines.value) FROM lines WHERE value IS NOT NULL
)
UPDATE tasks SET limit_key = NULL, in_line = FALSE WHERE id IN (
    SELECT id FROM tasks WHERE status = 'queued' AND lease_until IS NULL AND limit_key IS NOT NULL AND name IN (
        SELECT value FROM names WHERE value NOT IN (SELECT jsonb_array_elements_text(:limited))
        UNION SELECT value FROM lines WHERE value NOT IN (SELECT jsonb_array_elements_text(:limited)))
    LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED);

-- write close_unused_lines on sqlite: delete the waiting lines of tasks that have no limits any more
DELETE FROM task_lines WHERE name NOT IN (SELECT value FROM json_each(:limited));

-- write close_unused_lines on postgres: delete the waiting lines of tasks that have no limits any more
DELETE FROM task_lines WHERE name NOT IN (SELECT jsonb_array_elements_text(:limited));

-- write open_period on sqlite: reserve a key for a period, unless it is reserved already; a cancelled task frees its key
INSERT INTO task_periods (name, unique_key, until) VALUES (:name, :key, coalesce(:now, now()) + :length)
ON CONFLICT (name, unique_key) DO UPDATE SET until = excluded.until, task_id = NULL
WHERE task_periods.until <= coalesce(:now, now())
   OR EXISTS (SELECT 1 FROM tasks WHERE id = task_periods.task_id AND status = 'cancelled');

-- write open_period on postgres: reserve a key for a period, unless it is reserved already; a cancelled task frees its key
INSERT INTO task_periods (name, unique_key, until)
VALUES (:name, :key, coalesce(:now, statement_timestamp()) + :length::bigint * INTERVAL '1 microsecond')
ON CONFLICT (name, unique_key) DO UPDATE SET until = excluded.until, task_id = NULL
WHERE task_periods.until <= coalesce(:now, statement_timestamp())
   OR EXISTS (SELECT 1 FROM tasks WHERE id = task_periods.task_id AND status = 'cancelled');

-- read period: the task that has the key
SELECT task_id FROM task_periods WHERE name = :name AND unique_key = :key;

-- write set_period: record the task that has the key
UPDATE task_periods SET task_id = :id WHERE name = :name AND unique_key = :key;

-- write replace: give a waiting task new arguments
UPDATE tasks SET args = :args, priority = :priority, limit_key = :limit_key, in_line = FALSE
WHERE id = :id AND status = 'queued' AND lease_until IS NULL;

-- write reschedule on sqlite: move a waiting task to another time, unless it waits for another task
UPDATE tasks SET available_at = coalesce(:at, coalesce(:now, now()) + :delay), in_line = FALSE
WHERE id = :id AND status = 'queued' AND lease_until IS NULL AND NOT EXISTS (SELECT 1 FROM task_waits WHERE task_id = :id);

-- write reschedule on postgres: move a waiting task to another time, unless it waits for another task
UPDATE tasks SET available_at = coalesce(:at::timestamptz, coalesce(:now, statement_timestamp()) + :delay::bigint * INTERVAL '1 microsecond'),
    in_line = FALSE
WHERE id = :id AND status = 'queued' AND lease_until IS NULL AND NOT EXISTS (SELECT 1 FROM task_waits WHERE task_id = :id);

-- write prune_periods on sqlite: delete a bounded number of periods that have ended
DELETE FROM task_periods WHERE (name, unique_key) IN
    (SELECT name, unique_key FROM task_periods WHERE until <= coalesce(:now, now()) ORDER BY until LIMIT :limit);

-- write prune_periods on postgres: delete a bounded number of periods that have ended
DELETE FROM task_periods WHERE (name, unique_key) IN
    (SELECT name, unique_key FROM task_periods WHERE until <= coalesce(:now, statement_timestamp())
     ORDER BY until LIMIT :limit FOR UPDATE SKIP LOCKED);

-- write share_batch on sqlite: the name of a batch that accepts tasks
SELECT name FROM batches WHERE id = :id AND ended_at IS NULL AND cancelled_at IS NULL;

-- write share_batch on postgres: the name of a batch that accepts tasks; the batch does not end before the transaction ends
SELECT name FROM batches WHERE id = :id AND ended_at IS NULL AND cancelled_at IS NULL FOR SHARE;

-- write targets on sqlite: the given ids that are tasks or batches
SELECT id FROM tasks WHERE id IN (SELECT value FROM json_each(:ids))
UNION ALL SELECT id FROM batches WHERE id IN (SELECT value FROM json_each(:ids));

-- write targets on postgres: the given ids that are tasks or batches; none is deleted before the transaction ends
WITH known_tasks AS (
    SELECT id FROM tasks WHERE id IN (SELECT jsonb_array_elements_text(:ids)::uuid) FOR KEY SHARE
), known_batches AS (
    SELECT id FROM batches WHERE id IN (SELECT jsonb_array_elements_text(:ids)::uuid) FOR KEY SHARE
)
SELECT id FROM known_tasks UNION ALL SELECT id FROM known_batches;

-- write wait_for on sqlite: let new tasks wait for tasks and batches
INSERT INTO task_waits (task_id, for_id, runs_anyway, due_at)
SELECT task.value, target.value, :runs_anyway, coalesce(:at, coalesce(:now, now()) + :delay)
FROM json_each(:ids) AS task CROSS JOIN json_each(:targets) AS target;

-- write wait_for on postgres: let new tasks wait for tasks and batches
WITH sent AS (SELECT pg_notify('batuta', 'task-ends'))
INSERT INTO task_waits (task_id, for_id, runs_anyway, due_at)
SELECT task.value::uuid, target.value::uuid, :runs_anyway::boolean,
       coalesce(:at::timestamptz, coalesce(:now, statement_timestamp()) + :delay::bigint * INTERVAL '1 microsecond')
FROM jsonb_array_elements_text(:ids) AS task CROSS JOIN jsonb_array_elements_text(:targets) AS target CROSS JOIN sent;
