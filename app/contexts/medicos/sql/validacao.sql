-- read due: phones not checked yet, failed look-ups and expired claims; doctors who opted out are left out
SELECT id, telefone, telefone_tentativas FROM clientes
WHERE status_telefone IN ('pendente', 'validando', 'erro') AND deleted_at IS NULL AND NOT opt_out AND NOT opted_out
  AND coalesce(telefone_validar_em, created_at) <= :now
ORDER BY coalesce(telefone_validar_em, created_at) LIMIT :limit;

-- write claim: lease the phone; the first process wins
UPDATE clientes SET status_telefone = 'validando', telefone_validar_em = :lease_until
WHERE id = :id AND status_telefone IN ('pendente', 'validando', 'erro') AND coalesce(telefone_validar_em, created_at) <= :now;

-- write settle: store the result, if this process still holds the lease
UPDATE clientes
SET status_telefone = :status, telefone_validar_em = :next_at, telefone_tentativas = :tentativas,
    telefone_validado_em = CASE WHEN :is_known THEN :now ELSE telefone_validado_em END
WHERE id = :id AND status_telefone = 'validando' AND telefone_validar_em = :lease_until;

-- read askers: chips that may look up phones, most trusted first; a chip that only reads groups is not put at risk
SELECT id, instance_name FROM chips
WHERE tipo = 'julia' AND status = 'active' AND provider = 'evolution' AND evolution_connected
  AND (cooldown_until IS NULL OR cooldown_until <= :now)
ORDER BY trust_score DESC, instance_name;
