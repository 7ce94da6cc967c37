-- read open: open vacancies by day
SELECT vaga.id, vaga.status, vaga.data, vaga.hora_inicio, vaga.hora_fim, vaga.valor, vaga.valor_tipo, vaga.fechada_em, vaga.vaga_grupo_id,
       vaga.contato_nome, vaga.contato_whatsapp, vaga.created_at, hospital.nome AS hospital, hospital.cidade, hospital.estado AS uf,
       especialidade.nome AS especialidade, periodo.nome AS periodo
FROM vagas AS vaga JOIN hospitais AS hospital ON hospital.id = vaga.hospital_id
JOIN especialidades AS especialidade ON especialidade.id = vaga.especialidade_id LEFT JOIN periodos AS periodo ON periodo.id = vaga.periodo_id
WHERE vaga.deleted_at IS NULL AND vaga.status IN ('aberta', 'anunciada') AND vaga.data >= :de AND vaga.data <= :ate
ORDER BY vaga.data, vaga.id LIMIT :limite OFFSET :pular;

-- read closed: vacancies closed by a message or an operator, latest first
SELECT vaga.id, vaga.status, vaga.data, vaga.hora_inicio, vaga.hora_fim, vaga.valor, vaga.valor_tipo, vaga.fechada_em, vaga.vaga_grupo_id,
       vaga.contato_nome, vaga.contato_whatsapp, vaga.created_at, hospital.nome AS hospital, hospital.cidade, hospital.estado AS uf,
       especialidade.nome AS especialidade, periodo.nome AS periodo
FROM vagas AS vaga JOIN hospitais AS hospital ON hospital.id = vaga.hospital_id
JOIN especialidades AS especialidade ON especialidade.id = vaga.especialidade_id LEFT JOIN periodos AS periodo ON periodo.id = vaga.periodo_id
WHERE vaga.deleted_at IS NULL AND vaga.status = 'fechada' AND vaga.data >= :de AND vaga.data <= :ate
ORDER BY vaga.fechada_em DESC, vaga.id LIMIT :limite OFFSET :pular;

-- read count: number of open vacancies
SELECT count(*) AS items FROM vagas WHERE deleted_at IS NULL AND status IN ('aberta', 'anunciada') AND data >= :de;
