-- write chip_trust_history: delete old trust scores; daily snapshots and changes of status are kept
DELETE FROM chip_trust_history WHERE id IN (
    SELECT id FROM chip_trust_history WHERE created_at < :before ORDER BY created_at LIMIT :limit);

-- write chip_erros: delete old errors
DELETE FROM chip_erros WHERE id IN (SELECT id FROM chip_erros WHERE created_at < :before ORDER BY created_at LIMIT :limit);
