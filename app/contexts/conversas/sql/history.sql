-- write pendencias: delete old resolved entries of the pending list
DELETE FROM pendencias WHERE id IN (
    SELECT id FROM pendencias WHERE resolvida_em IS NOT NULL AND resolvida_em < :before ORDER BY resolvida_em LIMIT :limit);
