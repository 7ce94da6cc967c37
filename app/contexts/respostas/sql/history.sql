-- write mensagens_fora_horario: delete old answered messages of the night
DELETE FROM mensagens_fora_horario WHERE id IN (
    SELECT id FROM mensagens_fora_horario WHERE processada_em IS NOT NULL AND processada_em < :before ORDER BY processada_em LIMIT :limit);
