-- read past: vacancies in a state whose day has come, a page at a time
SELECT id, data, hora_inicio, hora_fim, periodo_id FROM vagas
WHERE deleted_at IS NULL AND status = :status AND data <= :hoje AND (data > :depois OR data = :depois AND id > :depois_id)
ORDER BY data, id LIMIT :limite;

-- read unconfirmed: shifts that ended and of which no person has said how
SELECT count(*) AS items, min(pendente_confirmacao_em) AS "desde [TIMESTAMPTZ]" FROM vagas
WHERE deleted_at IS NULL AND status = 'pendente_confirmacao' AND pendente_confirmacao_em <= :antes;
