-- read senders: chips that may send, with their recent counts and whether they wrote to this doctor
SELECT chip.id, chip.instance_name, chip.tipo, chip.status, chip.trust_score, chip.evolution_connected, chip.cooldown_until,
       chip.pode_prospectar, chip.pode_followup, chip.pode_responder, chip.limite_hora, chip.limite_dia, chip.delay_minimo_segundos,
       (SELECT count(*) FROM fila_mensagens AS sent WHERE sent.chip_id = chip.id AND sent.enviada_em > :hour_ago) AS na_hora,
       (SELECT count(*) FROM fila_mensagens AS sent WHERE sent.chip_id = chip.id AND sent.enviada_em > :day_ago) AS no_dia,
       EXISTS (SELECT 1 FROM conversations AS talk WHERE talk.id = :conversa_id AND talk.chip_id = chip.id) AS "da_conversa [BOOLEAN]",
       EXISTS (SELECT 1 FROM interacoes AS spoke WHERE spoke.cliente_id = :cliente_id AND spoke.chip_id = chip.id) AS "ja_falou [BOOLEAN]"
FROM chips AS chip WHERE chip.status = 'active' AND chip.tipo = 'julia';

-- read sender: whether this chip may still send
SELECT id FROM chips
WHERE id = :id AND status = 'active' AND tipo = 'julia' AND evolution_connected AND (cooldown_until IS NULL OR cooldown_until <= :now);

-- write rest: hold the chip until an instant
UPDATE chips
SET cooldown_until = CASE WHEN cooldown_until > :until THEN cooldown_until ELSE :until END, ultimo_erro_em = :now,
    erros_ultimas_24h = erros_ultimas_24h + 1, dias_sem_erro = 0, updated_at = :now
WHERE id = :id;

-- write error: record the error and its time
INSERT INTO chip_erros (id, chip_id, motivo, created_at) VALUES (:id, :chip_id, :motivo, :now);

-- read status: status of one chip
SELECT status FROM chips WHERE id = :id;
