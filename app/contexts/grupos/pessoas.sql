-- read same: contacts of one person; those with a number come first, then the oldest
SELECT id, bloqueado_em FROM contatos_grupo WHERE id = :id OR jid = :lid OR telefone IN (:telefone, :sem_nono)
ORDER BY CASE WHEN telefone IS NULL THEN 1 ELSE 0 END, created_at, id;
