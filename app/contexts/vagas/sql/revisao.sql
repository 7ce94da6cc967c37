-- read waiting: extracted vacancies with a status, and their source text, oldest first
SELECT vaga.*, mensagem.texto, mensagem.timestamp_msg, mensagem.sender_nome, grupo.nome AS grupo_nome, grupo.tipo AS grupo_tipo,
       hospital.nome AS hospital_nome, especialidade.nome AS especialidade_nome, contato.nome AS autor_nome,
       contato.telefone AS autor_telefone, pergunta.status AS pergunta_status, vacancy.status AS vaga_status,
       vacancy.fechada_em AS vaga_fechada_em, anterior.id AS anterior_id, anterior.status AS anterior_status,
       anterior.valor AS anterior_valor, anterior.hora_inicio AS anterior_hora_inicio, anterior.hora_fim AS anterior_hora_fim
FROM vagas_grupo AS vaga JOIN mensagens_grupo AS mensagem ON mensagem.id = vaga.mensagem_id
JOIN grupos_whatsapp AS grupo ON grupo.id = vaga.grupo_origem_id
LEFT JOIN hospitais AS hospital ON hospital.id = vaga.hospital_id
LEFT JOIN especialidades AS especialidade ON especialidade.id = vaga.especialidade_id
LEFT JOIN contatos_grupo AS contato ON contato.id = vaga.contato_responsavel_id
LEFT JOIN fila_mensagens AS pergunta ON pergunta.id = vaga.dm_recovery_mensagem_id
LEFT JOIN vagas AS vacancy ON vacancy.id = vaga.vaga_importada_id
LEFT JOIN vagas AS anterior ON anterior.vaga_grupo_id = vaga.duplicada_de
WHERE vaga.status = :status AND (vaga.created_at, vaga.id) > (:depois_em, :depois_de)
  AND (CAST(:motivo AS text) IS NULL OR vaga.motivo_status = :motivo OR vaga.motivo_status LIKE CAST(:motivo AS text) || ':%')
ORDER BY vaga.created_at, vaga.id LIMIT :limite OFFSET :pular;

-- read one: an extracted vacancy with its source text
SELECT vaga.*, mensagem.texto, mensagem.timestamp_msg, mensagem.sender_nome, grupo.nome AS grupo_nome, grupo.tipo AS grupo_tipo, grupo.regiao,
       hospital.nome AS hospital_nome, especialidade.nome AS especialidade_nome, contato.nome AS autor_nome,
       contato.telefone AS autor_telefone, pergunta.status AS pergunta_status, vacancy.status AS vaga_status,
       vacancy.fechada_em AS vaga_fechada_em, anterior.id AS anterior_id, anterior.status AS anterior_status,
       anterior.valor AS anterior_valor, anterior.hora_inicio AS anterior_hora_inicio, anterior.hora_fim AS anterior_hora_fim
FROM vagas_grupo AS vaga JOIN mensagens_grupo AS mensagem ON mensagem.id = vaga.mensagem_id
JOIN grupos_whatsapp AS grupo ON grupo.id = vaga.grupo_origem_id
LEFT JOIN hospitais AS hospital ON hospital.id = vaga.hospital_id
LEFT JOIN especialidades AS especialidade ON especialidade.id = vaga.especialidade_id
LEFT JOIN contatos_grupo AS contato ON contato.id = vaga.contato_responsavel_id
LEFT JOIN fila_mensagens AS pergunta ON pergunta.id = vaga.dm_recovery_mensagem_id
LEFT JOIN vagas AS vacancy ON vacancy.id = vaga.vaga_importada_id
LEFT JOIN vagas AS anterior ON anterior.vaga_grupo_id = vaga.duplicada_de
WHERE vaga.id = :id;

-- read of_vacancy: the extracted vacancy that a vacancy was imported from
SELECT vaga_grupo_id AS id FROM vagas WHERE id = :id AND vaga_grupo_id IS NOT NULL;

-- read sources: messages that offered an extracted vacancy, at most 100
SELECT fonte.ordem, fonte.texto_original, fonte.valor_informado, fonte.created_at, grupo.nome AS grupo_nome
FROM vagas_grupo_fontes AS fonte JOIN grupos_whatsapp AS grupo ON grupo.id = fonte.grupo_id
WHERE fonte.vaga_grupo_id = :id ORDER BY fonte.ordem LIMIT 100;

-- write decide: decide an extracted vacancy in review, once
UPDATE vagas_grupo SET revisada_por = :por, revisada_em = :now, notas_revisao = :notas, updated_at = :now
WHERE id = :id AND status = 'aguardando_revisao';

-- write correct: set the fields as the operator corrected them
UPDATE vagas_grupo
SET hospital_id = :hospital_id, especialidade_id = :especialidade_id, periodo_id = :periodo_id, data = :data, hora_inicio = :hora_inicio,
    hora_fim = :hora_fim, valor = :valor, valor_tipo = :valor_tipo, contato_nome = :contato_nome, contato_whatsapp = :contato_whatsapp,
    hash_dedup = :hash, updated_at = :now
WHERE id = :id;

-- read is_blocked: name of the hospital, if it is blocked
SELECT hospital.nome FROM hospitais_bloqueados AS block JOIN hospitais AS hospital ON hospital.id = block.hospital_id
WHERE block.hospital_id = :hospital AND block.status = 'bloqueado';

-- write reject: reject an extracted vacancy
UPDATE vagas_grupo SET status = 'rejeitada', motivo_status = :motivo, updated_at = :now WHERE id = :id;

-- read reasons: why vacancies are in review
SELECT motivo_status, count(*) AS items FROM vagas_grupo WHERE status = 'aguardando_revisao' GROUP BY motivo_status;

-- read count: number of vacancies in review
SELECT count(*) AS items FROM vagas_grupo WHERE status = 'aguardando_revisao';

-- read decided: reviewed vacancies with their source text, only of messages all of whose vacancies are decided
SELECT vaga.mensagem_id, vaga.status, vaga.data, vaga.periodo_id, vaga.hora_inicio, vaga.hora_fim, vaga.valor, vaga.valor_tipo,
       vaga.forma_pagamento_raw, vaga.contato_nome, vaga.contato_whatsapp, mensagem.texto, mensagem.timestamp_msg,
       grupo.nome AS grupo_nome, grupo.regiao, hospital.nome AS hospital_nome, hospital.cidade, hospital.estado,
       especialidade.nome AS especialidade_nome
FROM vagas_grupo AS vaga JOIN mensagens_grupo AS mensagem ON mensagem.id = vaga.mensagem_id
JOIN grupos_whatsapp AS grupo ON grupo.id = vaga.grupo_origem_id
LEFT JOIN hospitais AS hospital ON hospital.id = vaga.hospital_id
LEFT JOIN especialidades AS especialidade ON especialidade.id = vaga.especialidade_id
WHERE vaga.revisada_em IS NOT NULL AND mensagem.texto IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM vagas_grupo AS outra WHERE outra.mensagem_id = vaga.mensagem_id AND outra.revisada_em IS NULL)
ORDER BY mensagem.timestamp_msg, vaga.mensagem_id, vaga.id;
