-- write no_phone: mark incomplete vacancies whose author has no known number, so that they are not examined again
UPDATE vagas_grupo SET dm_recovery_status = 'sem_telefone', dm_recovery_sent_at = :now, updated_at = :now
WHERE status = 'aguardando_revisao' AND dm_recovery_status IS NULL AND motivo_status LIKE 'match_incompleto:%'
  AND NOT EXISTS (SELECT 1 FROM contatos_grupo AS contato LEFT JOIN contatos_lid AS hidden ON hidden.lid = contato.jid
                  WHERE contato.id = vagas_grupo.contato_responsavel_id AND coalesce(contato.telefone, hidden.telefone) IS NOT NULL);

-- read people: authors of incomplete vacancies without a question, oldest first; authors asked today are left out
SELECT contato.id, contato.nome, coalesce(contato.telefone, hidden.telefone) AS telefone, min(vaga.created_at) AS "desde [TIMESTAMPTZ]"
FROM vagas_grupo AS vaga JOIN contatos_grupo AS contato ON contato.id = vaga.contato_responsavel_id
LEFT JOIN contatos_lid AS hidden ON hidden.lid = contato.jid
WHERE vaga.status = 'aguardando_revisao' AND vaga.dm_recovery_status IS NULL AND vaga.motivo_status LIKE 'match_incompleto:%'
  AND (vaga.data IS NULL OR vaga.data >= :hoje) AND coalesce(contato.telefone, hidden.telefone) IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM vagas_grupo AS asked WHERE asked.contato_responsavel_id = contato.id
                  AND asked.status = 'aguardando_revisao' AND asked.dm_recovery_status = 'perguntada' AND asked.dm_recovery_sent_at >= :desde)
GROUP BY contato.id, contato.nome, contato.telefone, hidden.telefone ORDER BY 4, contato.id LIMIT :limite;

-- read waiting: number of questions still in the queue
SELECT count(*) AS items FROM fila_mensagens WHERE tipo = 'recuperacao' AND status IN ('pendente', 'processando');

-- write hold: lock a person, so that two processes cannot ask at the same time
UPDATE clientes SET tipo = tipo WHERE id = :id;

-- read asked: whether a question was enqueued since an instant or is still queued
SELECT 1 AS there FROM fila_mensagens
WHERE cliente_id = :cliente_id AND tipo = 'recuperacao' AND (created_at >= :desde OR status IN ('pendente', 'processando')) LIMIT 1;

-- read lacking on sqlite: incomplete vacancies of these contacts without a question
SELECT vaga.id, vaga.hospital_raw, vaga.especialidade_raw, vaga.data, vaga.periodo_raw, vaga.campos_faltando
FROM vagas_grupo AS vaga
WHERE vaga.contato_responsavel_id IN (SELECT value FROM json_each(:contatos)) AND vaga.status = 'aguardando_revisao'
  AND vaga.dm_recovery_status IS NULL AND vaga.motivo_status LIKE 'match_incompleto:%' AND (vaga.data IS NULL OR vaga.data >= :hoje)
ORDER BY vaga.data IS NULL, vaga.data, vaga.id;

-- read lacking on postgres: incomplete vacancies of these contacts without a question, locked against decisions
SELECT vaga.id, vaga.hospital_raw, vaga.especialidade_raw, vaga.data, vaga.periodo_raw, vaga.campos_faltando
FROM vagas_grupo AS vaga
WHERE vaga.contato_responsavel_id IN (SELECT jsonb_array_elements_text(:contatos)::uuid) AND vaga.status = 'aguardando_revisao'
  AND vaga.dm_recovery_status IS NULL AND vaga.motivo_status LIKE 'match_incompleto:%' AND (vaga.data IS NULL OR vaga.data >= :hoje)
ORDER BY vaga.data IS NULL, vaga.data, vaga.id FOR UPDATE;

-- write stamp: store the result of asking on a vacancy
UPDATE vagas_grupo
SET dm_recovery_status = :status, dm_recovery_mensagem_id = :mensagem_id, dm_recovery_sent_at = :now, updated_at = :now
WHERE id = :id;
