-- read counted: the figures of a period; each is a count of stored rows
SELECT
    (SELECT count(*) FROM fila_mensagens WHERE status = 'enviada' AND enviada_em >= :inicio AND enviada_em < :fim) AS enviadas,
    (SELECT count(*) FROM fila_mensagens WHERE status = 'bloqueada' AND outcome_at >= :inicio AND outcome_at < :fim) AS bloqueadas,
    (SELECT count(*) FROM fila_mensagens WHERE status = 'erro' AND outcome_at >= :inicio AND outcome_at < :fim) AS com_erro,
    (SELECT count(*) FROM interacoes WHERE tipo = 'entrada' AND created_at >= :inicio AND created_at < :fim) AS recebidas,
    (SELECT count(DISTINCT cliente_id) FROM fila_mensagens
     WHERE status = 'enviada' AND enviada_em >= :inicio AND enviada_em < :fim) AS medicos_contatados,
    (SELECT count(DISTINCT sent.cliente_id) FROM fila_mensagens AS sent
     WHERE sent.status = 'enviada' AND sent.enviada_em >= :inicio AND sent.enviada_em < :fim
       AND EXISTS (SELECT 1 FROM interacoes AS came WHERE came.cliente_id = sent.cliente_id AND came.tipo = 'entrada'
                   AND came.created_at >= sent.enviada_em AND came.created_at < :fim)) AS medicos_que_responderam,
    (SELECT count(DISTINCT vaga_id) FROM vagas_historico WHERE para = 'reservada' AND em >= :inicio AND em < :fim) AS plantoes_reservados,
    (SELECT count(DISTINCT cliente_id) FROM vagas_historico WHERE para = 'reservada' AND em >= :inicio AND em < :fim) AS medicos_com_reserva,
    (SELECT count(DISTINCT vaga_id) FROM vagas_historico WHERE para = 'realizada' AND em >= :inicio AND em < :fim) AS plantoes_realizados,
    (SELECT count(*) FROM business_events
     WHERE event_type IN ('medico_optout', 'externo_optout') AND ts >= :inicio AND ts < :fim) AS optouts,
    (SELECT count(*) FROM pendencias WHERE created_at >= :inicio AND created_at < :fim) AS pendencias_novas,
    (SELECT count(*) FROM pendencias
     WHERE created_at < :fim AND (resolvida_em IS NULL OR resolvida_em >= :fim)) AS pendencias_abertas;

-- read groups: the figures of the groups in a period, without the daily test message
SELECT
    (SELECT count(*) FROM mensagens_grupo WHERE created_at >= :inicio AND created_at < :fim
     AND grupo_id NOT IN (SELECT id FROM grupos_whatsapp WHERE tipo = 'canario')) AS mensagens,
    count(*) AS vagas_lidas,
    count(CASE WHEN status = 'duplicada' THEN 1 END) AS duplicadas,
    count(CASE WHEN status = 'importada' THEN 1 END) AS importadas,
    count(CASE WHEN status = 'aguardando_revisao' THEN 1 END) AS em_revisao
FROM vagas_grupo
WHERE created_at >= :inicio AND created_at < :fim
  AND grupo_origem_id NOT IN (SELECT id FROM grupos_whatsapp WHERE tipo = 'canario');

-- read classes: the inbound messages of a period by their class
SELECT classe, count(*) AS items FROM interacoes
WHERE tipo = 'entrada' AND classe IS NOT NULL AND created_at >= :inicio AND created_at < :fim
GROUP BY classe ORDER BY items DESC, classe;

-- read highlights: vacancies reserved in a period, newest first, without the doctor
SELECT vaga.id, hospital.nome AS hospital, especialidade.nome AS especialidade, vaga.data, periodo.nome AS periodo
FROM vagas_historico AS line JOIN vagas AS vaga ON vaga.id = line.vaga_id
JOIN hospitais AS hospital ON hospital.id = vaga.hospital_id
JOIN especialidades AS especialidade ON especialidade.id = vaga.especialidade_id LEFT JOIN periodos AS periodo ON periodo.id = vaga.periodo_id
WHERE line.para = 'reservada' AND line.em >= :inicio AND line.em < :fim
GROUP BY vaga.id, hospital.nome, especialidade.nome, vaga.data, periodo.nome
ORDER BY max(line.em) DESC, vaga.id LIMIT :limite;

-- write make: store a report; a second report of the same period is not stored
INSERT INTO relatorios (id, tipo, inicio, fim, metricas, destaques, por, created_at)
VALUES (:id, :tipo, :inicio, :fim, :metricas, :destaques, :por, :now)
ON CONFLICT (tipo, inicio) DO NOTHING;

-- read of_period: the stored report of a period
SELECT report.id, report.tipo, report.inicio, report.fim, report.metricas, report.destaques, report.por, report.created_at,
       slack.estado AS slack, slack.erro AS slack_erro, webhook.estado AS webhook, webhook.erro AS webhook_erro
FROM relatorios AS report
LEFT JOIN relatorios_envios AS slack ON slack.relatorio_id = report.id AND slack.destino = 'slack'
LEFT JOIN relatorios_envios AS webhook ON webhook.relatorio_id = report.id AND webhook.destino = 'webhook'
WHERE report.tipo = :tipo AND report.inicio = :inicio;

-- read one: one report
SELECT report.id, report.tipo, report.inicio, report.fim, report.metricas, report.destaques, report.por, report.created_at,
       slack.estado AS slack, slack.erro AS slack_erro, webhook.estado AS webhook, webhook.erro AS webhook_erro
FROM relatorios AS report
LEFT JOIN relatorios_envios AS slack ON slack.relatorio_id = report.id AND slack.destino = 'slack'
LEFT JOIN relatorios_envios AS webhook ON webhook.relatorio_id = report.id AND webhook.destino = 'webhook'
WHERE report.id = :id;

-- read listed: reports, newest period first
SELECT report.id, report.tipo, report.inicio, report.fim, report.metricas, report.destaques, report.por, report.created_at,
       slack.estado AS slack, slack.erro AS slack_erro, webhook.estado AS webhook, webhook.erro AS webhook_erro
FROM relatorios AS report
LEFT JOIN relatorios_envios AS slack ON slack.relatorio_id = report.id AND slack.destino = 'slack'
LEFT JOIN relatorios_envios AS webhook ON webhook.relatorio_id = report.id AND webhook.destino = 'webhook'
WHERE CAST(:tipo AS text) IS NULL OR report.tipo = :tipo
ORDER BY report.fim DESC, report.inicio DESC, report.tipo LIMIT :limite OFFSET :pular;

-- read unsent: other recent reports that a destination refused, or that were not sent to it yet, oldest first
SELECT report.id FROM relatorios AS report LEFT JOIN relatorios_envios AS sent ON sent.relatorio_id = report.id AND sent.destino = :destino
WHERE report.created_at >= :desde AND report.id <> :exceto AND (sent.estado IS NULL OR sent.estado = 'recusado')
ORDER BY report.fim, report.id;

-- write claim: record the intent to send; another process that has the intent, or a finished delivery, prevents it
INSERT INTO relatorios_envios (relatorio_id, destino, estado, desde) VALUES (:id, :destino, 'enviando', :now)
ON CONFLICT (relatorio_id, destino) DO UPDATE SET estado = 'enviando', desde = excluded.desde, erro = NULL
WHERE relatorios_envios.estado = 'recusado'
   OR :de_novo AND (relatorios_envios.estado IN ('incerto', 'enviado') OR relatorios_envios.desde <= :abandonado);

-- write settle: record the result of a request
UPDATE relatorios_envios SET estado = :estado, desde = :now, erro = :erro
WHERE relatorio_id = :id AND destino = :destino AND estado = 'enviando';

-- read undelivered: deliveries of the last day that were refused or whose result is unknown
SELECT count(*) AS items, min(desde) AS "desde [TIMESTAMPTZ]" FROM relatorios_envios
WHERE desde >= :depois AND (estado IN ('recusado', 'incerto') OR estado = 'enviando' AND desde <= :abandonado);
