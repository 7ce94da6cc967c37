-- write by_group: upsert the counts of each group on a day
INSERT INTO metricas_grupos_diarias (data, grupo_id, mensagens_total, mensagens_processadas, mensagens_descartadas, vagas_extraidas,
                                     vagas_importadas, vagas_revisao, vagas_descartadas, vagas_duplicadas,
                                     tempo_medio_processamento_ms, confianca_media_extracao, confianca_media_match)
SELECT :dia, said.grupo_id, said.total, said.processadas, said.descartadas, coalesce(found.extraidas, 0), coalesce(found.importadas, 0),
       coalesce(found.revisao, 0), coalesce(found.descartadas, 0), coalesce(found.duplicadas, 0), said.ms, found.confianca, found.match
FROM (
    SELECT grupo_id, count(*) AS total, sum(CASE WHEN processado_em IS NOT NULL THEN 1 ELSE 0 END) AS processadas,
           sum(CASE WHEN motivo_descarte IS NOT NULL THEN 1 ELSE 0 END) AS descartadas,
           avg(coalesce(heuristica_ms, 0) + coalesce(classificacao_ms, 0) + coalesce(extracao_ms, 0)) AS ms
    FROM mensagens_grupo WHERE created_at >= :since AND created_at < :until GROUP BY grupo_id
) AS said LEFT JOIN (
    SELECT grupo_origem_id, count(*) AS extraidas, sum(CASE WHEN status = 'importada' THEN 1 ELSE 0 END) AS importadas,
           sum(CASE WHEN status = 'aguardando_revisao' THEN 1 ELSE 0 END) AS revisao,
           sum(CASE WHEN status = 'descartada' THEN 1 ELSE 0 END) AS descartadas,
           sum(CASE WHEN status = 'duplicada' THEN 1 ELSE 0 END) AS duplicadas,
           avg(confianca_geral) AS confianca, avg(hospital_match_score) AS match
    FROM vagas_grupo WHERE created_at >= :since AND created_at < :until GROUP BY grupo_origem_id
) AS found ON found.grupo_origem_id = said.grupo_id
WHERE said.grupo_id NOT IN (SELECT id FROM grupos_whatsapp WHERE tipo = 'canario')
ON CONFLICT (data, grupo_id) DO UPDATE
SET mensagens_total = excluded.mensagens_total, mensagens_processadas = excluded.mensagens_processadas,
    mensagens_descartadas = excluded.mensagens_descartadas, vagas_extraidas = excluded.vagas_extraidas,
    vagas_importadas = excluded.vagas_importadas, vagas_revisao = excluded.vagas_revisao, vagas_descartadas = excluded.vagas_descartadas,
    vagas_duplicadas = excluded.vagas_duplicadas, tempo_medio_processamento_ms = excluded.tempo_medio_processamento_ms,
    confianca_media_extracao = excluded.confianca_media_extracao, confianca_media_match = excluded.confianca_media_match;

-- read day: counts of the pipeline on a day, without canary messages
SELECT said.grupos_ativos, said.mensagens_total, said.mensagens_processadas, said.heuristica_passou, said.extracao_sucesso,
       found.normalizacao_sucesso, found.vagas_importadas, found.vagas_revisao, found.vagas_duplicadas
FROM (
    SELECT count(DISTINCT grupo_id) AS grupos_ativos, count(*) AS mensagens_total, count(processado_em) AS mensagens_processadas,
           count(CASE WHEN passou_heuristica THEN 1 END) AS heuristica_passou,
           count(CASE WHEN qtd_vagas_extraidas > 0 THEN 1 END) AS extracao_sucesso
    FROM mensagens_grupo WHERE created_at >= :since AND created_at < :until
      AND grupo_id NOT IN (SELECT id FROM grupos_whatsapp WHERE tipo = 'canario')
) AS said CROSS JOIN (
    SELECT count(CASE WHEN dados_minimos_ok THEN 1 END) AS normalizacao_sucesso,
           count(CASE WHEN status = 'importada' THEN 1 END) AS vagas_importadas,
           count(CASE WHEN status = 'aguardando_revisao' THEN 1 END) AS vagas_revisao,
           count(CASE WHEN status = 'duplicada' THEN 1 END) AS vagas_duplicadas
    FROM vagas_grupo WHERE created_at >= :since AND created_at < :until
      AND grupo_origem_id NOT IN (SELECT id FROM grupos_whatsapp WHERE tipo = 'canario')
) AS found;

-- read times: arrival and completion of the messages of a day
SELECT created_at, processado_em FROM mensagens_grupo
WHERE created_at >= :since AND created_at < :until AND processado_em IS NOT NULL
  AND grupo_id NOT IN (SELECT id FROM grupos_whatsapp WHERE tipo = 'canario');

-- read dead_by_stage: dead rows of a day by stage
SELECT coalesce(ultimo_estagio, 'pendente') AS estagio, count(*) AS items FROM fila_processamento_grupos
WHERE estagio = 'erro' AND created_at >= :since AND created_at < :until GROUP BY coalesce(ultimo_estagio, 'pendente');

-- write by_day: upsert the counts of the pipeline on a day
INSERT INTO metricas_pipeline_diarias (data, grupos_ativos, mensagens_total, mensagens_processadas, heuristica_passou, extracao_sucesso,
                                       normalizacao_sucesso, vagas_importadas, vagas_revisao, vagas_duplicadas, llm_classificou,
                                       p50_tempo_ms, p95_tempo_ms, p99_tempo_ms, custo_total_usd, erros_total, erros_por_estagio)
VALUES (:dia, :grupos_ativos, :mensagens_total, :mensagens_processadas, :heuristica_passou, :extracao_sucesso, :normalizacao_sucesso,
        :vagas_importadas, :vagas_revisao, :vagas_duplicadas, :llm_classificou, :p50, :p95, :p99, :custo, :erros, :erros_por_estagio)
ON CONFLICT (data) DO UPDATE
SET grupos_ativos = excluded.grupos_ativos, mensagens_total = excluded.mensagens_total,
    mensagens_processadas = excluded.mensagens_processadas, heuristica_passou = excluded.heuristica_passou,
    extracao_sucesso = excluded.extracao_sucesso, normalizacao_sucesso = excluded.normalizacao_sucesso,
    vagas_importadas = excluded.vagas_importadas, vagas_revisao = excluded.vagas_revisao, vagas_duplicadas = excluded.vagas_duplicadas,
    llm_classificou = excluded.llm_classificou, p50_tempo_ms = excluded.p50_tempo_ms, p95_tempo_ms = excluded.p95_tempo_ms,
    p99_tempo_ms = excluded.p99_tempo_ms, custo_total_usd = excluded.custo_total_usd, erros_total = excluded.erros_total,
    erros_por_estagio = excluded.erros_por_estagio;
