-- read same: a person under each of his addresses, first the one that tells his number and is known longest
SELECT id, bloqueado_em FROM contatos_grupo WHERE id = :id OR jid = :lid OR telefone IN (:telefone, :sem_nono)
ORDER BY CASE WHEN telefone IS NULL THEN 1 ELSE 0 END, created_at, id;
