-- read chip: one chip by its instance
SELECT id, status, tipo, fase_warmup FROM chips WHERE instance_name = :instance;

-- write connected: store the newest state of the connection; an older event that arrives late changes nothing
UPDATE chips
SET evolution_connected = :connected, conexao_em = coalesce(:em, conexao_em), telefone = coalesce(telefone, :telefone), updated_at = :now
WHERE id = :id AND (conexao_em IS NULL OR conexao_em <= coalesce(:em, conexao_em));

-- write ban: mark the chip as banned by WhatsApp; only an operator lifts a ban
UPDATE chips SET status = 'banned', banned_at = :now, ban_reason = :reason, evolution_connected = FALSE, updated_at = :now
WHERE id = :id AND status NOT IN ('banned', 'cancelled');

-- write move: change the status, if the chip still has the expected status
UPDATE chips
SET status = :to_status, updated_at = :now,
    warming_started_at = CASE WHEN :to_status = 'warming' THEN coalesce(warming_started_at, :now) ELSE warming_started_at END
WHERE id = :id AND status = :from_status;

-- write note: record a change of status with its cause and reason
INSERT INTO chip_transitions (id, chip_id, from_status, to_status, reason, triggered_by, created_at)
VALUES (:id, :chip_id, :from_status, :to_status, :reason, :triggered_by, :now);

-- write assign: store an operator's decision. A chip that only reads groups loses every permission; a lifted ban is
-- cleared
UPDATE chips
SET tipo = :tipo, fase_warmup = :fase, pode_prospectar = pode_prospectar AND :sends, pode_followup = pode_followup AND :sends,
    pode_responder = pode_responder AND :sends, banned_at = CASE WHEN :is_banned THEN banned_at END,
    ban_reason = CASE WHEN :is_banned THEN ban_reason END, warming_started_at = coalesce(:since, warming_started_at), updated_at = :now
WHERE id = :id;
