-- read unread: an earlier message of the group in the pipeline; within the same second, only the quoted one or one past
-- the reading stages
SELECT 1 AS there FROM mensagens_grupo AS mensagem JOIN fila_processamento_grupos AS fila ON fila.mensagem_id = mensagem.id
WHERE mensagem.grupo_id = :grupo_id AND mensagem.timestamp_msg <= :em AND mensagem.timestamp_msg > :since AND mensagem.id <> :mensagem_id
  AND fila.estagio IN ('pendente', 'classificacao', 'extracao', 'normalizacao', 'deduplicacao', 'importacao')
  AND (mensagem.timestamp_msg < :em OR mensagem.message_id = :citada OR fila.estagio NOT IN ('classificacao', 'extracao')) LIMIT 1;

-- read quoted: whether the quoted message has arrived
SELECT 1 AS there FROM mensagens_grupo WHERE message_id = :citada;

-- read open_in_group: open vacancies, and extracted ones in review, that earlier messages of the group offered
SELECT vaga.id AS "id [UUID]", vaga.hospital_id AS "hospital_id [UUID]", vaga.especialidade_id AS "especialidade_id [UUID]",
       vaga.data AS "data [DATE]", vaga.periodo_id, mensagem.message_id AS citavel, fonte.contato_id AS "autor [UUID]"
FROM vagas_grupo_fontes AS fonte JOIN mensagens_grupo AS mensagem ON mensagem.id = fonte.mensagem_id
JOIN vagas AS vaga ON vaga.vaga_grupo_id = fonte.vaga_grupo_id
WHERE fonte.grupo_id = :grupo_id AND fonte.mensagem_id <> :mensagem_id AND mensagem.timestamp_msg <= :em
  AND vaga.status IN ('aberta', 'anunciada') AND vaga.deleted_at IS NULL
UNION ALL
SELECT vaga.id, vaga.hospital_id, vaga.especialidade_id, vaga.data, vaga.periodo_id, mensagem.message_id, fonte.contato_id
FROM vagas_grupo_fontes AS fonte JOIN mensagens_grupo AS mensagem ON mensagem.id = fonte.mensagem_id
JOIN vagas_grupo AS vaga ON vaga.id = fonte.vaga_grupo_id
WHERE fonte.grupo_id = :grupo_id AND fonte.mensagem_id <> :mensagem_id AND mensagem.timestamp_msg <= :em
  AND vaga.status = 'aguardando_revisao'
ORDER BY 4, 1;

-- read vacancies: open vacancies by their id or by the id of the extracted vacancy
SELECT id FROM vagas WHERE (id = :id OR vaga_grupo_id = :id) AND status IN ('aberta', 'anunciada') AND deleted_at IS NULL;

-- write reject: reject an extracted vacancy in review because it is taken
UPDATE vagas_grupo SET status = 'rejeitada', motivo_status = 'preenchida', revisada_por = :por, revisada_em = :now, updated_at = :now
WHERE id = :id AND status = 'aguardando_revisao';

-- write reject_change: reject a change in review of a vacancy that is taken
UPDATE vagas_grupo SET status = 'rejeitada', motivo_status = 'preenchida', revisada_por = :por, revisada_em = :now, updated_at = :now
WHERE status = 'aguardando_revisao' AND motivo_status = 'valor_mudou'
  AND duplicada_de = (SELECT vaga.vaga_grupo_id FROM vagas AS vaga WHERE vaga.id = :id);

-- write free_key: free the key of a taken vacancy, so that the same offer later is a new vacancy
DELETE FROM vagas_grupo_chaves
WHERE hash_dedup = (SELECT vaga.hash_dedup FROM vagas AS vaga WHERE vaga.id = :id) OR vaga_grupo_id = :id;

-- write add: store a notice with the vacancies it closed, or with the candidates for an operator
INSERT INTO fechamentos_grupo (id, mensagem_id, grupo_id, status, como, motivo, trecho, fechadas, candidatas, created_at)
VALUES (:id, :mensagem_id, :grupo_id, :status, :como, :motivo, :trecho, :fechadas, :candidatas, :now)
ON CONFLICT DO NOTHING;

-- read waiting: notices with a status, oldest first
SELECT fechamento.*, mensagem.texto, mensagem.timestamp_msg, grupo.nome AS grupo_nome
FROM fechamentos_grupo AS fechamento JOIN mensagens_grupo AS mensagem ON mensagem.id = fechamento.mensagem_id
JOIN grupos_whatsapp AS grupo ON grupo.id = fechamento.grupo_id
WHERE fechamento.status = :status ORDER BY fechamento.created_at, fechamento.id LIMIT :limite OFFSET :pular;

-- read one: a notice
SELECT id, status, candidatas FROM fechamentos_grupo WHERE id = :id;

-- read candidates on sqlite: vacancies, and extracted ones in review, with their names
SELECT vaga.id AS "id [UUID]", vaga.status, vaga.data AS "data [DATE]", vaga.hora_inicio, vaga.hora_fim, hospital.nome AS hospital,
       especialidade.nome AS especialidade, periodo.nome AS periodo
FROM vagas AS vaga JOIN hospitais AS hospital ON hospital.id = vaga.hospital_id
JOIN especialidades AS especialidade ON especialidade.id = vaga.especialidade_id LEFT JOIN periodos AS periodo ON periodo.id = vaga.periodo_id
WHERE vaga.id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT vaga.id, vaga.status, vaga.data, vaga.hora_inicio, vaga.hora_fim, hospital.nome, especialidade.nome, periodo.nome
FROM vagas_grupo AS vaga LEFT JOIN hospitais AS hospital ON hospital.id = vaga.hospital_id
LEFT JOIN especialidades AS especialidade ON especialidade.id = vaga.especialidade_id
LEFT JOIN periodos AS periodo ON periodo.id = vaga.periodo_id
WHERE vaga.id IN (SELECT value FROM json_each(:ids)) ORDER BY 3, 1;

-- read candidates on postgres: vacancies, and extracted ones in review, with their names
SELECT vaga.id AS "id [UUID]", vaga.status, vaga.data AS "data [DATE]", vaga.hora_inicio, vaga.hora_fim, hospital.nome AS hospital,
       especialidade.nome AS especialidade, periodo.nome AS periodo
FROM vagas AS vaga JOIN hospitais AS hospital ON hospital.id = vaga.hospital_id
JOIN especialidades AS especialidade ON especialidade.id = vaga.especialidade_id LEFT JOIN periodos AS periodo ON periodo.id = vaga.periodo_id
WHERE vaga.id IN (SELECT jsonb_array_elements_text(:ids)::uuid)
UNION ALL
SELECT vaga.id, vaga.status, vaga.data, vaga.hora_inicio, vaga.hora_fim, hospital.nome, especialidade.nome, periodo.nome
FROM vagas_grupo AS vaga LEFT JOIN hospitais AS hospital ON hospital.id = vaga.hospital_id
LEFT JOIN especialidades AS especialidade ON especialidade.id = vaga.especialidade_id
LEFT JOIN periodos AS periodo ON periodo.id = vaga.periodo_id
WHERE vaga.id IN (SELECT jsonb_array_elements_text(:ids)::uuid) ORDER BY 3, 1;

-- write decide: store an operator's decision about a notice, once
UPDATE fechamentos_grupo
SET status = :status, como = :como, fechadas = :fechadas, revisada_por = :por, revisada_em = :now
WHERE id = :id AND status = 'aguardando_revisao';
