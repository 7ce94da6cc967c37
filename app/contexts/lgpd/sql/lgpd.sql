-- write open_request: record a request
INSERT INTO lgpd_pedidos (id, tipo, digests, alvo, por, motivo, contagens, restam, created_at, updated_at, concluido_em)
VALUES (:id, :tipo, :digests, :alvo, :por, :motivo, :contagens, :restam, :now, :now, :concluido_em);

-- write advance: store the counts of an erasure; a complete one forgets the identifiers of the person
UPDATE lgpd_pedidos
SET digests = :digests, alvo = :alvo, contagens = :contagens, restam = :restam, updated_at = :now, concluido_em = :concluido_em
WHERE id = :id AND concluido_em IS NULL;

-- read open_erasures: erasures that are not complete, the longest untouched first
SELECT id, alvo, contagens, por, motivo FROM lgpd_pedidos WHERE concluido_em IS NULL ORDER BY updated_at, id LIMIT :limit;

-- read one: one request
SELECT id, tipo, por, motivo, contagens, restam, created_at, updated_at, concluido_em FROM lgpd_pedidos WHERE id = :id;

-- read recent: the newest requests
SELECT id, tipo, por, motivo, contagens, restam, created_at, updated_at, concluido_em FROM lgpd_pedidos
ORDER BY created_at DESC, id DESC LIMIT :limit;

-- read late: number of erasures that were requested before an instant and are still open, and the time of the oldest one
SELECT count(*) AS items, min(created_at) AS "desde [TIMESTAMPTZ]" FROM lgpd_pedidos WHERE concluido_em IS NULL AND created_at < :before;

-- write refuse_number: record that a number gets no messages, by its keyed digest
INSERT INTO optouts_do_diario (digest, created_at) VALUES (:digest, :now) ON CONFLICT DO NOTHING;

-- read reserved on sqlite: shifts that these doctors have reserved
SELECT id FROM vagas WHERE cliente_id IN (SELECT value FROM json_each(:medicos)) AND status = 'reservada' AND deleted_at IS NULL;

-- read reserved on postgres: shifts that these doctors have reserved
SELECT id FROM vagas
WHERE cliente_id IN (SELECT jsonb_array_elements_text(:medicos)::uuid) AND status = 'reservada' AND deleted_at IS NULL;

-- write cancel_tasks on sqlite: cancel readings of appointments that have not started, and ask running ones to stop
UPDATE tasks SET cancel_requested = TRUE, status = CASE WHEN status = 'queued' AND lease_until IS NULL THEN 'cancelled' ELSE status END,
    finished_at = CASE WHEN status = 'queued' AND lease_until IS NULL THEN :now ELSE finished_at END
WHERE id IN (SELECT value FROM json_each(:tarefas)) AND status IN ('queued', 'in_progress');

-- write cancel_tasks on postgres: cancel readings of appointments that have not started, and ask running ones to stop
UPDATE tasks SET cancel_requested = TRUE, status = CASE WHEN status = 'queued' AND lease_until IS NULL THEN 'cancelled' ELSE status END,
    finished_at = CASE WHEN status = 'queued' AND lease_until IS NULL THEN :now ELSE finished_at END
WHERE id IN (SELECT jsonb_array_elements_text(:tarefas)::uuid) AND status IN ('queued', 'in_progress');

-- read in_help_desk on sqlite: conversations of which the help desk has a copy, by its own numbers
SELECT chatwoot_conversation_id AS id FROM conversations
WHERE id IN (SELECT value FROM json_each(:conversas)) AND chatwoot_conversation_id IS NOT NULL ORDER BY 1;

-- read in_help_desk on postgres: conversations of which the help desk has a copy, by its own numbers
SELECT chatwoot_conversation_id AS id FROM conversations
WHERE id IN (SELECT jsonb_array_elements_text(:conversas)::uuid) AND chatwoot_conversation_id IS NOT NULL ORDER BY 1;
