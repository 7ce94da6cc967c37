-- write known on sqlite: those of these keys that are there already; a transaction that writes is the only one anyway
SELECT id, chave, fonte, normalization_status, {campos} FROM appointments WHERE chave IN ({chaves});

-- write known on postgres: those of these keys that are there already; nobody else changes them until the transaction ends
SELECT id, chave, fonte, normalization_status, {campos} FROM appointments WHERE chave IN ({chaves}) ORDER BY chave FOR UPDATE;

-- write known_by_place on sqlite: those with an id of their origin's that are of these patients, places and times
SELECT id, chave, chave_natural, fonte, normalization_status, {campos} FROM appointments WHERE chave_natural IN ({chaves}) ORDER BY id;

-- write known_by_place on postgres: those with an id of their origin's that are of these patients, places and times
SELECT id, chave, chave_natural, fonte, normalization_status, {campos} FROM appointments
WHERE chave_natural IN ({chaves}) ORDER BY id FOR UPDATE;

-- read taken: another one that has this key
SELECT id FROM appointments WHERE chave = :chave AND id <> :id;

-- write hold on sqlite: one that is about to be changed; a transaction that writes is the only one anyway
SELECT id, chave, chave_natural, importacao_id, aba, linha, fonte, normalization_status, {campos} FROM appointments WHERE id = :id;

-- write hold on postgres: one that is about to be changed; nobody else changes it until the transaction ends
SELECT id, chave, chave_natural, importacao_id, aba, linha, fonte, normalization_status, {campos} FROM appointments WHERE id = :id FOR UPDATE;

-- write hold_many on sqlite: those that are about to be changed; a transaction that writes is the only one anyway
SELECT id FROM appointments WHERE id IN ({ids});

-- write hold_many on postgres: those that are about to be changed, before their tasks as everybody does, and by their keys
SELECT id FROM appointments WHERE id IN ({ids}) ORDER BY chave FOR UPDATE;

-- write change on sqlite: what they say now; a reading of something else goes
UPDATE appointments
SET {changed}, {read_again}, updated_at = :now
FROM json_each(:rows) AS row WHERE appointments.id = row.value ->> 'id';

-- write change on postgres: what they say now; a reading of something else goes
UPDATE appointments
SET {changed}, {read_again}, updated_at = :now
FROM jsonb_populate_recordset(NULL::appointments, :rows) AS row WHERE appointments.id = row.id;

-- write cars on sqlite: those that were not there
INSERT INTO carros (nome, created_at) SELECT value, :now FROM json_each(:nomes) WHERE TRUE ON CONFLICT DO NOTHING;

-- write cars on postgres: those that were not there
INSERT INTO carros (nome, created_at) SELECT nome, :now FROM jsonb_array_elements_text(:nomes) AS nome ON CONFLICT DO NOTHING;

-- read one: everything of one
SELECT * FROM appointments WHERE id = :id;

-- read of_job: the one a task was for
SELECT id, normalization_status, normalization_error, endereco_normalizado, documento_normalizado, normalized_at, created_at
FROM appointments WHERE normalization_job_id = :job;

-- read counts: how many in which state of being read
SELECT normalization_status AS status, count(*) AS quantos FROM appointments GROUP BY normalization_status;

-- read failed: those whose reading failed, the oldest first
SELECT id FROM appointments WHERE normalization_status = 'failed' ORDER BY updated_at LIMIT :limit;

-- read unread: those whose reading was switched off and is not any more, the oldest first
SELECT id FROM appointments WHERE normalization_status = 'skipped' AND {readable} ORDER BY updated_at LIMIT :limit;

-- read chosen: those of these that can be read, and are not being read already
SELECT id FROM appointments
WHERE id IN ({ids}) AND normalization_status IN ('failed', 'skipped', 'completed') AND (normalization_status = 'failed' OR {readable})
ORDER BY updated_at LIMIT :limit;

-- write supersede: of those that get another task, the one that failed waits for nobody's decision any more
UPDATE tasks SET status = 'cancelled'
WHERE status = 'failed' AND lease_until IS NULL AND id IN (SELECT normalization_job_id FROM appointments WHERE id IN ({ids}));

-- write requeue on sqlite: their reading begins again
UPDATE appointments
SET normalization_status = 'pending', normalization_error = NULL, normalization_job_id = row.value ->> 'job', updated_at = :now
FROM json_each(:rows) AS row
WHERE appointments.id = row.value ->> 'id' AND normalization_status IN ('failed', 'pending', 'processing', 'skipped', 'completed');

-- write requeue on postgres: their reading begins again
UPDATE appointments
SET normalization_status = 'pending', normalization_error = NULL, normalization_job_id = row.job, updated_at = :now
FROM jsonb_to_recordset(:rows) AS row (id uuid, job uuid)
WHERE appointments.id = row.id AND normalization_status IN ('failed', 'pending', 'processing', 'skipped', 'completed');

-- read source: what is to be read, and what has been
SELECT id, endereco_completo, documento_completo, cep, fonte, normalization_status, endereco_normalizado, documento_normalizado
FROM appointments WHERE id = :id;

-- read sources: the same of many
SELECT id, endereco_completo, documento_completo, cep, fonte, normalization_status, endereco_normalizado, documento_normalizado
FROM appointments WHERE id IN ({ids});

-- write begin: somebody works on it; what it was read from is still the same
UPDATE appointments SET normalization_status = 'processing', updated_at = :now
WHERE id = :id AND fonte = :fonte AND normalization_status IN ('pending', 'processing', 'failed');

-- write read: what was made of it, unless it says something else by now
UPDATE appointments
SET normalization_status = :status, normalization_error = :error, endereco_normalizado = :endereco,
    documento_normalizado = :documento, cpf = :cpf, rg = :rg, normalized_at = :now, updated_at = :now
WHERE id = :id AND fonte = :fonte;

-- write read_together on sqlite: the same of many; which were written
UPDATE appointments
SET normalization_status = row.value ->> 'status', normalization_error = row.value ->> 'error',
    endereco_normalizado = nullif(row.value -> 'endereco', 'null'), documento_normalizado = nullif(row.value -> 'documento', 'null'),
    cpf = row.value ->> 'cpf', rg = row.value ->> 'rg', normalized_at = :now, updated_at = :now
FROM json_each(:rows) AS row
WHERE appointments.id = row.value ->> 'id' AND fonte = row.value ->> 'fonte' RETURNING appointments.id, fonte;

-- write read_together on postgres: the same of many; who waited for one while holding others could wait for ever, so none waits
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

-- read orphans: waiting, and older than they should be; with what became of their task
SELECT appointment.id, appointment.normalization_job_id AS job, task.status AS task_status, task.error AS task_error
FROM appointments AS appointment LEFT JOIN tasks AS task ON task.id = appointment.normalization_job_id
WHERE appointment.normalization_status IN ('pending', 'processing')
  AND ((task.status IN ('failed', 'cancelled', 'complete') AND appointment.updated_at < :settled_before)
       OR (task.id IS NULL AND appointment.updated_at < :lost_before))
ORDER BY appointment.updated_at LIMIT :limit;

-- write give_up: its task ended without a word to it
UPDATE appointments SET normalization_status = 'failed', normalization_error = :error, updated_at = :now
WHERE id = :id AND normalization_job_id = :job AND normalization_status IN ('pending', 'processing');
