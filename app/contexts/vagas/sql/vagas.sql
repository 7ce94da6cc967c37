-- read vagas on sqlite: columns of extracted vacancies that the later stages use
SELECT vaga.id, vaga.mensagem_id, vaga.grupo_origem_id, vaga.contato_responsavel_id, vaga.hospital_raw, vaga.especialidade_raw,
       vaga.periodo_raw, vaga.cidade, vaga.estado, vaga.data, vaga.hora_inicio, vaga.hora_fim, vaga.valor, vaga.valor_tipo,
       vaga.forma_pagamento_raw, vaga.contato_nome, vaga.contato_whatsapp, vaga.hospital_id, vaga.especialidade_id, vaga.periodo_id,
       vaga.hospital_match_score, vaga.especialidade_match_score, vaga.confianca_data, vaga.confianca_geral, vaga.hash_dedup, vaga.status,
       vaga.vaga_importada_id, chave.vaga_grupo_id AS dona, grupo.regiao, grupo.tipo AS grupo_tipo, contato.nome AS autor_nome, contato.telefone AS autor_telefone,
       EXISTS (SELECT 1 FROM hospitais_bloqueados AS block WHERE block.hospital_id = vaga.hospital_id AND block.status = 'bloqueado')
           AS "bloqueado [BOOLEAN]",
       substr(mensagem.texto, 1, 500) AS texto
FROM vagas_grupo AS vaga JOIN grupos_whatsapp AS grupo ON grupo.id = vaga.grupo_origem_id
JOIN mensagens_grupo AS mensagem ON mensagem.id = vaga.mensagem_id
LEFT JOIN contatos_grupo AS contato ON contato.id = vaga.contato_responsavel_id
LEFT JOIN vagas_grupo_chaves AS chave ON chave.hash_dedup = vaga.hash_dedup
WHERE vaga.id IN (SELECT value FROM json_each(:ids));

-- read vagas on postgres: columns of extracted vacancies that the later stages use
SELECT vaga.id, vaga.mensagem_id, vaga.grupo_origem_id, vaga.contato_responsavel_id, vaga.hospital_raw, vaga.especialidade_raw,
       vaga.periodo_raw, vaga.cidade, vaga.estado, vaga.data, vaga.hora_inicio, vaga.hora_fim, vaga.valor, vaga.valor_tipo,
       vaga.forma_pagamento_raw, vaga.contato_nome, vaga.contato_whatsapp, vaga.hospital_id, vaga.especialidade_id, vaga.periodo_id,
       vaga.hospital_match_score, vaga.especialidade_match_score, vaga.confianca_data, vaga.confianca_geral, vaga.hash_dedup, vaga.status,
       vaga.vaga_importada_id, chave.vaga_grupo_id AS dona, grupo.regiao, grupo.tipo AS grupo_tipo, contato.nome AS autor_nome, contato.telefone AS autor_telefone,
       EXISTS (SELECT 1 FROM hospitais_bloqueados AS block WHERE block.hospital_id = vaga.hospital_id AND block.status = 'bloqueado')
           AS bloqueado,
       substr(mensagem.texto, 1, 500) AS texto
FROM vagas_grupo AS vaga JOIN grupos_whatsapp AS grupo ON grupo.id = vaga.grupo_origem_id
JOIN mensagens_grupo AS mensagem ON mensagem.id = vaga.mensagem_id
LEFT JOIN contatos_grupo AS contato ON contato.id = vaga.contato_responsavel_id
LEFT JOIN vagas_grupo_chaves AS chave ON chave.hash_dedup = vaga.hash_dedup
WHERE vaga.id IN (SELECT jsonb_array_elements_text(:ids)::uuid);

-- write normalised: store the ids and scores of the names, and the missing fields
UPDATE vagas_grupo
SET hospital_id = :hospital_id, hospital_match_score = :hospital_score, hospital_criado = :criado, especialidade_id = :especialidade_id,
    especialidade_match_score = :especialidade_score, periodo_id = :periodo_id, campos_faltando = :faltando, dados_minimos_ok = :ok,
    data_valida = :data_valida, hash_dedup = :hash, status = 'normalizada', motivo_status = NULL, updated_at = :now
WHERE id = :id AND status IN ('nova', 'normalizada', 'aguardando_revisao');

-- write take_keys on sqlite: claim keys. A holder keeps its key while the vacancy is open. Otherwise it keeps a recent
-- key, unless its item failed or its vacancy was closed or cancelled
INSERT INTO vagas_grupo_chaves (hash_dedup, vaga_grupo_id, desde)
SELECT asked.value ->> 'hash', asked.value ->> 'vaga', :now FROM json_each(:asked) AS asked WHERE TRUE
ON CONFLICT (hash_dedup) DO UPDATE
SET vaga_grupo_id = CASE WHEN (vagas_grupo_chaves.desde > :since AND NOT EXISTS (
        SELECT 1 FROM vagas WHERE vagas.vaga_grupo_id = vagas_grupo_chaves.vaga_grupo_id AND vagas.status IN ('cancelada', 'fechada'))
        AND NOT EXISTS (SELECT 1 FROM fila_processamento_grupos AS fila WHERE fila.vaga_grupo_id = vagas_grupo_chaves.vaga_grupo_id
        AND fila.estagio IN ('erro', 'cancelado'))) OR EXISTS (
        SELECT 1 FROM vagas WHERE vagas.hash_dedup = vagas_grupo_chaves.hash_dedup AND vagas.deleted_at IS NULL
        AND vagas.status IN ('aberta', 'anunciada')) THEN vagas_grupo_chaves.vaga_grupo_id ELSE excluded.vaga_grupo_id END,
    desde = CASE WHEN (vagas_grupo_chaves.desde > :since AND NOT EXISTS (
        SELECT 1 FROM vagas WHERE vagas.vaga_grupo_id = vagas_grupo_chaves.vaga_grupo_id AND vagas.status IN ('cancelada', 'fechada'))
        AND NOT EXISTS (SELECT 1 FROM fila_processamento_grupos AS fila WHERE fila.vaga_grupo_id = vagas_grupo_chaves.vaga_grupo_id
        AND fila.estagio IN ('erro', 'cancelado'))) OR EXISTS (
        SELECT 1 FROM vagas WHERE vagas.hash_dedup = vagas_grupo_chaves.hash_dedup AND vagas.deleted_at IS NULL
        AND vagas.status IN ('aberta', 'anunciada')) THEN vagas_grupo_chaves.desde ELSE excluded.desde END
RETURNING hash_dedup AS hash, vaga_grupo_id AS vaga;

-- write take_keys on postgres: claim keys. A holder keeps its key while the vacancy is open. Otherwise it keeps a
-- recent key, unless its item failed or its vacancy was closed or cancelled
INSERT INTO vagas_grupo_chaves (hash_dedup, vaga_grupo_id, desde)
SELECT asked.hash, asked.vaga, :now FROM jsonb_to_recordset(:asked) AS asked (hash text, vaga uuid)
ON CONFLICT (hash_dedup) DO UPDATE
SET vaga_grupo_id = CASE WHEN (vagas_grupo_chaves.desde > :since AND NOT EXISTS (
        SELECT 1 FROM vagas WHERE vagas.vaga_grupo_id = vagas_grupo_chaves.vaga_grupo_id AND vagas.status IN ('cancelada', 'fechada'))
        AND NOT EXISTS (SELECT 1 FROM fila_processamento_grupos AS fila WHERE fila.vaga_grupo_id = vagas_grupo_chaves.vaga_grupo_id
        AND fila.estagio IN ('erro', 'cancelado'))) OR EXISTS (
        SELECT 1 FROM vagas WHERE vagas.hash_dedup = vagas_grupo_chaves.hash_dedup AND vagas.deleted_at IS NULL
        AND vagas.status IN ('aberta', 'anunciada')) THEN vagas_grupo_chaves.vaga_grupo_id ELSE excluded.vaga_grupo_id END,
    desde = CASE WHEN (vagas_grupo_chaves.desde > :since AND NOT EXISTS (
        SELECT 1 FROM vagas WHERE vagas.vaga_grupo_id = vagas_grupo_chaves.vaga_grupo_id AND vagas.status IN ('cancelada', 'fechada'))
        AND NOT EXISTS (SELECT 1 FROM fila_processamento_grupos AS fila WHERE fila.vaga_grupo_id = vagas_grupo_chaves.vaga_grupo_id
        AND fila.estagio IN ('erro', 'cancelado'))) OR EXISTS (
        SELECT 1 FROM vagas WHERE vagas.hash_dedup = vagas_grupo_chaves.hash_dedup AND vagas.deleted_at IS NULL
        AND vagas.status IN ('aberta', 'anunciada')) THEN vagas_grupo_chaves.desde ELSE excluded.desde END
RETURNING hash_dedup AS hash, vaga_grupo_id AS vaga;

-- write hold: lock an extracted vacancy while its sources are counted
UPDATE vagas_grupo SET updated_at = :now WHERE id = :id;

-- write add_source: add a message to the sources of an extracted vacancy
INSERT INTO vagas_grupo_fontes (vaga_grupo_id, mensagem_id, grupo_id, contato_id, ordem, texto_original, valor_informado, contato_informado,
                                created_at)
VALUES (:id, :mensagem_id, :grupo_id, :contato_id, (SELECT count(*) + 1 FROM vagas_grupo_fontes WHERE vaga_grupo_id = :id), :texto, :valor,
        :contato, :now)
ON CONFLICT DO NOTHING;

-- write count_sources: store the number of sources of an extracted vacancy
UPDATE vagas_grupo SET qtd_fontes = (SELECT count(*) FROM vagas_grupo_fontes WHERE vaga_grupo_id = :id) WHERE id = :id;

-- write repeats: make an extracted vacancy a duplicate, unless the principal was rejected or discarded
UPDATE vagas_grupo SET status = 'duplicada', eh_duplicada = TRUE, duplicada_de = :principal, motivo_status = 'duplicada', updated_at = :now
WHERE id = :id AND status IN ('nova', 'normalizada', 'aguardando_revisao')
  AND EXISTS (SELECT 1 FROM vagas_grupo AS other WHERE other.id = :principal AND other.status NOT IN ('rejeitada', 'descartada'));

-- write send_to_review: send an extracted vacancy to review after its principal was rejected or discarded
UPDATE vagas_grupo SET status = 'aguardando_revisao', motivo_status = 'outra_recusada', updated_at = :now
WHERE id = :id AND status IN ('nova', 'normalizada');

-- write import_: insert the vacancy as which an extracted vacancy was imported, once
INSERT INTO vagas (id, hospital_id, especialidade_id, periodo_id, data, hora_inicio, hora_fim, valor, valor_tipo, forma_pagamento, status,
                   origem, vaga_grupo_id, hash_dedup, contato_nome, contato_whatsapp, deleted_at, created_at, updated_at)
SELECT :id, :hospital_id, :especialidade_id, :periodo_id, :data, grupo.hora_inicio, grupo.hora_fim,
       CAST(round(CAST(grupo.valor AS NUMERIC)) AS INTEGER), grupo.valor_tipo, :forma_pagamento, :status, :origem, grupo.id, :hash,
       :contato_nome, :contato_whatsapp, :deleted_at, :now, :now
FROM vagas_grupo AS grupo WHERE grupo.id = :vaga_grupo_id AND grupo.status = 'importada' AND grupo.vaga_importada_id = :id
ON CONFLICT DO NOTHING;

-- write judged: store the decision about an undecided extracted vacancy
UPDATE vagas_grupo
SET status = :status, motivo_status = :motivo, score_importacao = :score, limiar_importacao = :limiar_importacao,
    limiar_revisao = :limiar_revisao, vaga_importada_id = :vaga_id, importada_em = :importada_em, updated_at = :now
WHERE id = :id AND status IN ('nova', 'normalizada', 'aguardando_revisao');

-- write free_dropped: free the key of a discarded vacancy
DELETE FROM vagas_grupo_chaves WHERE hash_dedup = :hash AND vaga_grupo_id = :id
  AND EXISTS (SELECT 1 FROM vagas_grupo AS vaga WHERE vaga.id = :id AND vaga.status = 'descartada');

-- write arrived: decrease the number of a message's vacancies that are still in the pipeline; the last one completes the message
UPDATE mensagens_grupo
SET vagas_a_caminho = vagas_a_caminho - 1, status = CASE WHEN vagas_a_caminho <= 1 THEN 'processada' ELSE status END,
    processado_em = CASE WHEN vagas_a_caminho <= 1 THEN :now ELSE processado_em END
WHERE id = :id;
