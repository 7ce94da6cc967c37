-- read metrics: counts for the health page, all from indexes; a row that waits for its retry is not stuck
SELECT (SELECT count(*) FROM fila_processamento_grupos WHERE estagio = 'pendente') AS pendentes,
       (SELECT count(*) FROM fila_processamento_grupos
        WHERE estagio IN ('pendente', 'classificacao', 'extracao', 'normalizacao', 'deduplicacao', 'importacao')
        AND lease_until IS NULL AND proximo_retry < :hour_ago)
       + (SELECT count(*) FROM fila_processamento_grupos WHERE lease_until IS NOT NULL AND lease_until < :hour_ago) AS travados,
       (SELECT count(*) FROM fila_processamento_grupos WHERE estagio = 'erro' AND updated_at >= :day_ago) AS erros_24h,
       (SELECT count(*) FROM fila_processamento_grupos WHERE estagio = 'erro') AS erros,
       (SELECT count(*) FROM fila_processamento_grupos WHERE estagio = 'pendente' AND lease_until IS NULL
        AND proximo_retry < :four_hours_ago) AS antigos,
       (SELECT count(*) FROM vagas_grupo WHERE status = 'aguardando_revisao') AS em_revisao,
       (SELECT min(created_at) FROM vagas_grupo WHERE status = 'aguardando_revisao') AS "em_revisao_desde [TIMESTAMPTZ]";

-- read flow: results of the messages and vacancies of a period, without canary messages
SELECT said.mensagens, said.passaram, said.recusadas, found.aproveitadas, found.vagas, found.vagas_descartadas
FROM (
    SELECT count(CASE WHEN status <> 'pendente' THEN 1 END) AS mensagens, count(CASE WHEN passou_heuristica THEN 1 END) AS passaram,
           count(CASE WHEN passou_heuristica AND status IN ('classificada_nao_oferta', 'descartada') THEN 1 END) AS recusadas
    FROM mensagens_grupo WHERE created_at >= :since AND created_at < :until
      AND grupo_id NOT IN (SELECT id FROM grupos_whatsapp WHERE tipo = 'canario')
) AS said CROSS JOIN (
    SELECT count(CASE WHEN status IN ('importada', 'aguardando_revisao', 'duplicada', 'rejeitada') THEN 1 END) AS aproveitadas,
           count(CASE WHEN status NOT IN ('nova', 'normalizada') THEN 1 END) AS vagas,
           count(CASE WHEN status = 'descartada' THEN 1 END) AS vagas_descartadas
    FROM vagas_grupo WHERE created_at >= :since AND created_at < :until
      AND grupo_origem_id NOT IN (SELECT id FROM grupos_whatsapp WHERE tipo = 'canario')
) AS found;

-- read commonest: the most frequent price, and the number of vacancies with any price
SELECT valor, count(*) AS vezes, CAST(sum(count(*)) OVER () AS INTEGER) AS todas, count(DISTINCT hospital_id) AS lugares
FROM vagas_grupo WHERE created_at >= :since AND valor IS NOT NULL
  AND grupo_origem_id NOT IN (SELECT id FROM grupos_whatsapp WHERE tipo = 'canario')
GROUP BY valor ORDER BY vezes DESC, valor LIMIT 1;

-- read canary: the latest canary message and its number of vacancies
SELECT mensagem.created_at, mensagem.status AS mensagem_status,
       (SELECT count(*) FROM vagas WHERE origem = 'canario' AND vagas.vaga_grupo_id IN (
           SELECT id FROM vagas_grupo WHERE vagas_grupo.mensagem_id = mensagem.id)) AS vagas
FROM mensagens_grupo AS mensagem JOIN grupos_whatsapp AS grupo ON grupo.id = mensagem.grupo_id
WHERE grupo.tipo = 'canario' ORDER BY mensagem.created_at DESC LIMIT 1;
