-- write known on sqlite: existing rows with these keys; a write transaction on SQLite excludes all others, so no row
-- lock is needed
SELECT id, chave, fonte, normalization_status, {campos} FROM appointments WHERE chave IN ({chaves});

-- write known on postgres: existing rows with these keys, locked until the transaction ends
SELECT id, chave, fonte, normalization_status, {campos} FROM appointments WHERE chave IN ({chaves}) ORDER BY chave FOR UPDATE;

-- write known_by_place on sqlite: existing rows that have an id of their source system and one of these combinations of
-- patient, place and time
SELECT id, chave, chave_natural, fonte, normalization_status, {campos} FROM appointments WHERE chave_natural IN ({chaves}) ORDER BY id;

-- write known_by_place on postgres: existing rows that have an id of their source system and one of these combinations
-- of patient, place and time
SELECT id, chave, chave_natural, fonte, normalization_status, {campos} FROM appointments
WHERE chave_natural IN ({chaves}) ORDER BY id FOR UPDATE;

-- read taken: another row with this key
SELECT id FROM appointments WHERE chave = :chave AND id <> :id;

-- write hold on sqlite: one row to change; a write transaction on SQLite excludes all others, so no row lock is needed
SELECT id, chave, chave_natural, importacao_id, aba, linha, fonte, normalization_status, {campos} FROM appointments WHERE id = :id;

-- write hold on postgres: one row to change, locked until the transaction ends
SELECT id, chave, chave_natural, importacao_id, aba, linha, fonte, normalization_status, {campos} FROM appointments WHERE id = :id FOR UPDATE;

-- write hold_many on sqlite: rows to change; a write transaction on SQLite excludes all others, so no row lock is
-- needed
SELECT id FROM appointments WHERE id IN ({ids});

-- write hold_many on postgres: rows to change, locked in key order and before their tasks, as everywhere in the code
SELECT id FROM appointments WHERE id IN ({ids}) ORDER BY chave FOR UPDATE;

-- write change on sqlite: set the new values; delete the reading if its text changed
UPDATE appointments
SET {changed}, {read_again}, updated_at = :now
FROM json_each(:rows) AS row WHERE appointments.id = row.value ->> 'id';

-- write change on postgres: set the new values; delete the reading if its text changed
UPDATE appointments
SET {changed}, {read_again}, updated_at = :now
FROM jsonb_populate_recordset(NULL::appointments, :rows) AS row WHERE appointments.id = row.id;

-- write cars on sqlite: insert unknown cars
INSERT INTO carros (nome, created_at) SELECT value, :now FROM json_each(:nomes) WHERE TRUE ON CONFLICT DO NOTHING;

-- write cars on postgres: insert unknown cars
INSERT INTO carros (nome, created_at) SELECT nome, :now FROM jsonb_array_elements_text(:nomes) AS nome ON CONFLICT DO NOTHING;

-- read one: all columns of one row
SELECT * FROM appointments WHERE id = :id;

-- read of_job: the appointment of a task
SELECT id, normalization_status, normalization_error, endereco_normalizado, documento_normalizado, normalized_at, created_at
FROM appointments WHERE normalization_job_id = :job;

-- read counts: number of appointments by state of their reading
SELECT normalization_status AS status, count(*) AS quantos FROM appointments GROUP BY normalization_status;

-- read failed: appointments whose reading failed, or that an operator set to waiting without a task, oldest first
SELECT id, updated_at FROM appointments WHERE normalization_status = 'failed'
UNION ALL
SELECT id, updated_at FROM appointments WHERE normalization_status = 'pending' AND normalization_job_id IS NULL
ORDER BY updated_at LIMIT :limit;

-- read unread: appointments skipped while the reading was switched off, oldest first
SELECT id FROM appointments WHERE normalization_status = 'skipped' AND {readable} ORDER BY updated_at LIMIT :limit;

-- read chosen: appointments among these ids that have text to read and no reading in progress
SELECT id FROM appointments
WHERE id IN ({ids}) AND normalization_status IN ('failed', 'skipped', 'completed') AND (normalization_status = 'failed' OR {readable})
ORDER BY updated_at LIMIT :limit;

-- write supersede: cancel the failed tasks of appointments that get a new task
UPDATE tasks SET status = 'cancelled'
WHERE status = 'failed' AND lease_until IS NULL AND id IN (SELECT normalization_job_id FROM appointments WHERE id IN ({ids}));

-- write requeue on sqlite: set appointments back to waiting, each with its new task
UPDATE appointments
SET normalization_status = 'pending', normalization_error = NULL, normalization_job_id = row.value ->> 'job', updated_at = :now
FROM json_each(:rows) AS row
WHERE appointments.id = row.value ->> 'id' AND normalization_status IN ('failed', 'pending', 'processing', 'skipped', 'completed');

-- write requeue on postgres: set appointments back to waiting, each with its new task
UPDATE appointments
SET normalization_status = 'pending', normalization_error = NULL, normalization_job_id = row.job, updated_at = :now
FROM jsonb_to_recordset(:rows) AS row (id uuid, job uuid)
WHERE appointments.id = row.id AND normalization_status IN ('failed', 'pending', 'processing', 'skipped', 'completed');

-- read source: the texts to read and the stored reading of one appointment
SELECT id, endereco_completo, documento_completo, cep, fonte, normalization_status, endereco_normalizado, documento_normalizado
FROM appointments WHERE id = :id;

-- read sources: the texts to read and the stored readings of many appointments
SELECT id, endereco_completo, documento_completo, cep, fonte, normalization_status, endereco_normalizado, documento_normalizado
FROM appointments WHERE id IN ({ids});

-- write begin: mark the reading as in progress, if the text is unchanged
UPDATE appointments SET normalization_status = 'processing', updated_at = :now
WHERE id = :id AND fonte = :fonte AND normalization_status IN ('pending', 'processing', 'failed');

-- write read: store a reading, if the text is unchanged
UPDATE appointments
SET normalization_status = :status, normalization_error = :error, endereco_normalizado = :endereco,
    documento_normalizado = :documento, cpf = :cpf, rg = :rg, normalized_at = :now, updated_at = :now
WHERE id = :id AND fonte = :fonte;

-- write read_together on sqlite: store many readings; returns the ids of the rows written
UPDATE appointments
SET normalization_status = row.value ->> 'status', normalization_error = row.value ->> 'error',
    endereco_normalizado = nullif(row.value -> 'endereco', 'null'), documento_normalizado = nullif(row.value -> 'documento', 'null'),
    cpf = row.value ->> 'cpf', rg = row.value ->> 'rg', normalized_at = :now, updated_at = :now
FROM json_each(:rows) AS row
WHERE appointments.id = row.value ->> 'id' AND fonte = row.value ->> 'fonte' RETURNING appointments.id, fonte;

-- write read_together on postgres: store many readings; skips locked rows, because waiting while holding locks could
-- deadlock
WITH row AS (
    SELECT * FROM jsonb_to_recordset(:rows) AS row
        (id uuid, fonte text, status text, error text, endereco jsonb, documento jsonb, cpf text, rg text)
), free AS (
    SELECT appointment.id FROM appointments AS appointment JOIN row ON row.id = appointment.id AND row.fonte = appointment.fonte
    FOR UPDATE OF appointment SKIP LOCKED
)
UPDATE appointments
SET normalization_status = row.status, normalization_error = row.error, endereco_normalizado = row.endereco,
    documento_normalizado = row.documento, cpf = row.cpf, rg = row.rg, normalized_at = :now, updated_at = :now
FROM row JOIN free ON free.id = row.id
WHERE appointments.id = row.id AND appointments.fonte = row.fonte RETURNING appointments.id, appointments.fonte;

-- read orphans: appointments that have waited too long, with the state of their task
SELECT appointment.id, appointment.normalization_job_id AS job, task.status AS task_status, task.error AS task_error
FROM appointments AS appointment LEFT JOIN tasks AS task ON task.id = appointment.normalization_job_id
WHERE appointment.normalization_status IN ('pending', 'processing')
  AND ((task.status IN ('failed', 'cancelled', 'complete') AND appointment.updated_at < :settled_before)
       OR (task.id IS NULL AND appointment.updated_at < :lost_before))
ORDER BY appointment.updated_at LIMIT :limit;

-- write give_up: mark a reading as failed after its task ended without a result
UPDATE appointments SET normalization_status = 'failed', normalization_error = :error, updated_at = :now
WHERE id = :id AND normalization_job_id = :job AND normalization_status IN ('pending', 'processing');
