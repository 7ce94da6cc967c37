-- read same: contacts of one person; those with a number come first, then the oldest
SELECT id, bloqueado_em FROM contatos_grupo WHERE id = :id OR jid = :lid OR telefone IN (:telefone, :sem_nono)
ORDER BY CASE WHEN telefone IS NULL THEN 1 ELSE 0 END, created_at, id;

-- read excluded: whether a number, in either form, is opted out, blocked, or one of our chips
SELECT 1 AS there FROM clientes AS person LEFT JOIN doctor_state AS state ON state.cliente_id = person.id
WHERE person.telefone IN (:form, :other_form)
  AND (person.opt_out OR person.opted_out OR person.status IN ('optout', 'opt_out') OR state.permission_state = 'opted_out')
UNION ALL SELECT 1 FROM external_contacts AS other WHERE other.telefone IN (:form, :other_form) AND other.permission_state = 'opted_out'
UNION ALL SELECT 1 FROM contatos_grupo AS poster LEFT JOIN contatos_lid AS hidden ON hidden.lid = poster.jid
    WHERE poster.bloqueado_em IS NOT NULL AND coalesce(poster.telefone, hidden.telefone) IN (:form, :other_form)
UNION ALL SELECT 1 FROM chips AS chip WHERE chip.telefone IN (:form, :other_form)
LIMIT 1;

-- write add_person: insert the author of an offer as a contact; an existing doctor stays a doctor
INSERT INTO clientes (id, telefone, primeiro_nome, tipo, status_telefone, created_at)
VALUES (:id, :telefone, :nome, 'divulgador', 'validado', :now) ON CONFLICT DO NOTHING;

-- read person: the owner of a number
SELECT id FROM clientes WHERE telefone_chave = :chave AND deleted_at IS NULL;
