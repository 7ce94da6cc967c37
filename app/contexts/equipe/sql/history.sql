-- write avisos_equipe: delete old notices to the team
DELETE FROM avisos_equipe WHERE id IN (
    SELECT id FROM avisos_equipe WHERE finished_at IS NOT NULL AND finished_at < :before ORDER BY finished_at LIMIT :limit);

-- write central_fila: delete old processed changes for the help desk
DELETE FROM central_fila WHERE id IN (
    SELECT id FROM central_fila WHERE finished_at IS NOT NULL AND finished_at < :before ORDER BY finished_at LIMIT :limit);
