-- write hold_hospital: lock a hospital, so that two operators cannot create the same vacancy concurrently
UPDATE hospitais SET nome = nome WHERE id = :id RETURNING nome;

-- read is_blocked: whether the hospital is blocked, so that its vacancies are not offered
SELECT 1 AS blocked FROM hospitais_bloqueados WHERE hospital_id = :id AND status = 'bloqueado';

-- read same: an open vacancy for the same hospital, day, period and speciality
SELECT id FROM vagas WHERE hash_dedup = :hash AND deleted_at IS NULL AND status IN ('aberta', 'anunciada') ORDER BY created_at LIMIT 1;

-- write create: insert a vacancy that an operator enters
INSERT INTO vagas (id, hospital_id, especialidade_id, periodo_id, data, hora_inicio, hora_fim, valor, valor_tipo, status, origem, hash_dedup,
                   criada_por, created_at, updated_at)
VALUES (:id, :hospital_id, :especialidade_id, :periodo_id, :data, :hora_inicio, :hora_fim, :valor, :valor_tipo, 'aberta', 'manual', :hash,
        :por, :now, :now);

-- read listed: vacancies, earliest day first
SELECT vaga.id, vaga.status, vaga.data, vaga.hora_inicio, vaga.hora_fim, vaga.valor, vaga.valor_tipo, vaga.origem, vaga.cliente_id,
       vaga.criada_por, vaga.cancelada_motivo, vaga.created_at, vaga.updated_at, hospital.nome AS hospital, hospital.cidade,
       hospital.estado AS uf, especialidade.nome AS especialidade, vaga.periodo_id, periodo.nome AS periodo
FROM vagas AS vaga JOIN hospitais AS hospital ON hospital.id = vaga.hospital_id
JOIN especialidades AS especialidade ON especialidade.id = vaga.especialidade_id LEFT JOIN periodos AS periodo ON periodo.id = vaga.periodo_id
WHERE vaga.deleted_at IS NULL AND vaga.data >= :de AND vaga.data <= :ate
  AND (CAST(:status AS text) IS NULL OR vaga.status = :status)
  AND (CAST(:origem AS text) IS NULL OR vaga.origem = :origem)
  AND (NOT :por_medico OR vaga.cliente_id = :cliente_id)
  AND (CAST(:hospital AS text) IS NULL OR EXISTS (SELECT 1 FROM hospitais_alias AS alias
       WHERE alias.hospital_id = vaga.hospital_id AND alias.alias_normalizado LIKE :hospital))
  AND (vaga.data, coalesce(vaga.hora_inicio, ''), vaga.id) > (:depois_dia, :depois_hora, :depois_de)
ORDER BY vaga.data, coalesce(vaga.hora_inicio, ''), vaga.id LIMIT :limite OFFSET :pular;

-- read one: one vacancy with the names that it refers to
SELECT vaga.id, vaga.status, vaga.data, vaga.hora_inicio, vaga.hora_fim, vaga.valor, vaga.valor_tipo, vaga.origem, vaga.cliente_id,
       vaga.criada_por, vaga.cancelada_motivo, vaga.created_at, vaga.updated_at, hospital.nome AS hospital, hospital.cidade,
       hospital.estado AS uf, especialidade.nome AS especialidade, vaga.periodo_id, periodo.nome AS periodo
FROM vagas AS vaga JOIN hospitais AS hospital ON hospital.id = vaga.hospital_id
JOIN especialidades AS especialidade ON especialidade.id = vaga.especialidade_id LEFT JOIN periodos AS periodo ON periodo.id = vaga.periodo_id
WHERE vaga.id = :id AND vaga.deleted_at IS NULL;

-- read history: every change of a vacancy, in order
SELECT ordem, de, para, por, motivo, cliente_id, em FROM vagas_historico WHERE vaga_id = :id ORDER BY ordem;

-- read offers: the doctors who were offered the vacancy, with the state of each message
SELECT offer.cliente_id, offer.por, offer.created_at, message.status AS mensagem, message.enviada_em
FROM vagas_ofertas AS offer JOIN fila_mensagens AS message ON message.id = offer.mensagem_id
WHERE offer.vaga_id = :id ORDER BY offer.created_at, offer.cliente_id;

-- read interests: the doctors who want the vacancy, earliest first
SELECT cliente_id, por, created_at FROM vagas_interesses WHERE vaga_id = :id ORDER BY created_at, cliente_id;

-- read is_doctor: whether this id is a doctor
SELECT 1 AS there FROM clientes WHERE id = :id AND tipo = 'medico' AND deleted_at IS NULL;

-- read was_offered: whether the vacancy was offered to any doctor
SELECT 1 AS there FROM vagas_ofertas WHERE vaga_id = :id LIMIT 1;

-- write interest: record that a doctor wants the vacancy; repeating it adds nothing
INSERT INTO vagas_interesses (vaga_id, cliente_id, por, created_at) VALUES (:id, :cliente_id, :por, :now) ON CONFLICT DO NOTHING;

-- read counts: number of vacancies by status; open and ended ones count only from today on
SELECT status, count(*) AS items FROM vagas
WHERE deleted_at IS NULL
  AND (status IN ('reservada', 'aguardando_confirmacao', 'pendente_confirmacao')
       OR status IN ('aberta', 'anunciada', 'realizada', 'cancelada') AND data >= :hoje)
GROUP BY status;
