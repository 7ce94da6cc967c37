-- read metrics: how the pipeline is, counted from its indexes. What waits for its next attempt is not stuck
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

-- read flow: what became of messages and vagas since then
SELECT (SELECT count(*) FROM mensagens_grupo WHERE created_at >= :since AND created_at < :until AND status <> 'pendente') AS mensagens,
       (SELECT count(*) FROM mensagens_grupo WHERE created_at >= :since AND created_at < :until AND passou_heuristica) AS passaram,
       (SELECT count(*) FROM mensagens_grupo WHERE created_at >= :since AND created_at < :until AND passou_heuristica
        AND status IN ('classificada_nao_oferta', 'descartada')) AS recusadas,
       (SELECT count(*) FROM vagas_grupo WHERE created_at >= :since AND created_at < :until AND status IN ('importada', 'aguardando_revisao',
        'duplicada', 'rejeitada')) AS aproveitadas,
       (SELECT count(*) FROM vagas_grupo WHERE created_at >= :since AND created_at < :until AND status <> 'nova'
        AND status <> 'normalizada') AS vagas,
       (SELECT count(*) FROM vagas_grupo WHERE created_at >= :since AND created_at < :until AND status = 'descartada') AS vagas_descartadas;

-- read commonest: the value most vagas have, and how many have any
SELECT valor, count(*) AS vezes, (SELECT count(*) FROM vagas_grupo WHERE created_at >= :since AND valor IS NOT NULL) AS todas,
       count(DISTINCT hospital_id) AS lugares
FROM vagas_grupo WHERE created_at >= :since AND valor IS NOT NULL GROUP BY valor ORDER BY vezes DESC, valor LIMIT 1;

-- read canary: how the last rehearsal went
SELECT mensagem.created_at, mensagem.status AS mensagem_status,
       (SELECT count(*) FROM vagas WHERE origem = 'canario' AND vagas.vaga_grupo_id IN (
           SELECT id FROM vagas_grupo WHERE vagas_grupo.mensagem_id = mensagem.id)) AS vagas
FROM mensagens_grupo AS mensagem JOIN grupos_whatsapp AS grupo ON grupo.id = mensagem.grupo_id
WHERE grupo.tipo = 'canario' ORDER BY mensagem.created_at DESC LIMIT 1;
