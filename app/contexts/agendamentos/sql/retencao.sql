-- write appointments on sqlite: delete appointments whose visit and last change are old and whose reading has ended
DELETE FROM appointments WHERE id IN (
    SELECT id FROM appointments
    WHERE updated_at < :before AND normalization_status NOT IN ('pending', 'processing')
      AND (data_agendamento IS NULL OR data_agendamento < date(:before / 1000000, 'unixepoch'))
    ORDER BY updated_at LIMIT :limit);

-- write appointments on postgres: delete appointments whose visit and last change are old and whose reading has ended
DELETE FROM appointments WHERE id IN (
    SELECT id FROM appointments
    WHERE updated_at < :before AND normalization_status NOT IN ('pending', 'processing')
      AND (data_agendamento IS NULL OR data_agendamento < to_char(CAST(:before AS timestamptz) AT TIME ZONE 'UTC', 'YYYY-MM-DD'))
    ORDER BY updated_at LIMIT :limit);
