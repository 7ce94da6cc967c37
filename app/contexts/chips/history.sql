-- write prune_history: how far chips were trusted long ago
DELETE FROM chip_trust_history WHERE id IN (
    SELECT id FROM chip_trust_history WHERE created_at < :before ORDER BY created_at LIMIT :limit);

-- write prune_errors: errors of long ago
DELETE FROM chip_erros WHERE id IN (SELECT id FROM chip_erros WHERE created_at < :before ORDER BY created_at LIMIT :limit);
