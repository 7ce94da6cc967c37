-- read metrics: figures of the send queue, counted from its indexes
SELECT (SELECT count(*) FROM fila_mensagens WHERE fila = 'fila_mensagens' AND status = 'pendente' AND lease_until IS NULL AND envio_estado IS NULL
        AND agendar_para <= :now) AS pendentes,
       (SELECT count(*) FROM fila_mensagens WHERE fila = 'fila_mensagens' AND status = 'pendente' AND lease_until IS NULL AND envio_estado IS NULL
        AND agendar_para > :now) AS agendadas,
       (SELECT count(*) FROM fila_mensagens WHERE fila = 'fila_mensagens' AND status = 'pendente' AND lease_until IS NULL AND envio_estado IS NULL
        AND agendar_para > :now AND agendar_para <= :soon AND substr(erro, 1, length(CAST(:no_line AS text))) = :no_line) AS sem_gateway,
       (SELECT min(agendar_para) FROM fila_mensagens WHERE fila = 'fila_mensagens' AND status = 'pendente' AND lease_until IS NULL AND envio_estado IS NULL
        AND agendar_para <= :now) AS "mais_antiga [TIMESTAMPTZ]",
       (SELECT count(*) FROM fila_mensagens WHERE fila = 'fila_mensagens' AND status = 'processando') AS processando,
       (SELECT count(*) FROM fila_mensagens WHERE fila = 'fila_mensagens' AND status = 'processando'
        AND (processando_desde < :hour_ago OR lease_until IS NULL OR lease_until <= :now)) AS travadas,
       (SELECT count(*) FROM fila_mensagens WHERE fila = 'fila_mensagens' AND status = 'enviada' AND enviada_em > :hour_ago) AS enviadas_ultima_hora,
       (SELECT count(*) FROM fila_mensagens WHERE fila = 'fila_mensagens' AND status = 'erro' AND finalizada_em > :hour_ago) AS erros_ultima_hora,
       (SELECT count(*) FROM fila_mensagens WHERE fila = 'fila_mensagens' AND envio_estado IS NOT NULL AND envio_estado <> 'parked') AS em_duvida,
       (SELECT count(*) FROM fila_mensagens WHERE fila = 'fila_mensagens' AND envio_estado = 'parked') AS para_decisao,
       (SELECT min(envio_desde) FROM fila_mensagens WHERE fila = 'fila_mensagens' AND envio_estado = 'parked') AS "para_decisao_desde [TIMESTAMPTZ]",
       (SELECT count(*) FROM fila_mensagens_dlq WHERE NOT reprocessado) AS dlq;
