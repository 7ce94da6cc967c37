-- read past: vacancies with a status whose day is today or past, one page at a time
SELECT id, data, hora_inicio, hora_fim, periodo_id FROM vagas
WHERE deleted_at IS NULL AND status = :status AND data <= :hoje AND (data > :depois OR data = :depois AND id > :depois_id)
ORDER BY data, id LIMIT :limite;

-- read unconfirmed: ended shifts that no operator has confirmed
SELECT count(*) AS items, min(pendente_confirmacao_em) AS "desde [TIMESTAMPTZ]" FROM vagas
WHERE deleted_at IS NULL AND status = 'pendente_confirmacao' AND pendente_confirmacao_em <= :antes;
