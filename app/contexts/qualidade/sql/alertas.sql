-- read handovers: conversations with messages in the last hour, those of them that a person took or has to take, and the same for the last day and for the week before
SELECT (SELECT count(DISTINCT conversation_id) FROM interacoes WHERE created_at > :hour_ago AND created_at <= :now) AS conversas,
       (SELECT count(DISTINCT change.conversa_id) FROM conversas_historico AS change
        WHERE change.acao IN ('escalar', 'assumir') AND change.em > :hour_ago AND change.em <= :now
          AND EXISTS (SELECT 1 FROM interacoes AS said WHERE said.conversation_id = change.conversa_id AND said.created_at > :hour_ago)
       ) AS com_pessoa,
       (SELECT count(DISTINCT conversa_id) FROM conversas_historico
        WHERE acao IN ('escalar', 'assumir') AND em > :day_ago AND em <= :now) AS handoffs_dia,
       (SELECT count(DISTINCT conversa_id) FROM conversas_historico
        WHERE acao IN ('escalar', 'assumir') AND em > :week_ago AND em <= :day_ago) AS handoffs_semana;

-- read places: hospitals with many hand-offs to the authors of their vacancies in the last day, with those of the week before
SELECT hospital.id, hospital.nome, count(CASE WHEN handoff.created_at > :day_ago THEN 1 END) AS dia,
       count(CASE WHEN handoff.created_at <= :day_ago THEN 1 END) AS semana
FROM external_handoffs AS handoff JOIN vagas AS vaga ON vaga.id = handoff.vaga_id JOIN hospitais AS hospital ON hospital.id = vaga.hospital_id
WHERE handoff.created_at > :week_ago AND handoff.created_at <= :now
GROUP BY hospital.id, hospital.nome HAVING count(CASE WHEN handoff.created_at > :day_ago THEN 1 END) >= :least
ORDER BY dia DESC, hospital.id LIMIT :most;

-- read answered: inbound messages of the sending hours whose first answer was sent since an instant, with both times
SELECT came.created_at AS "veio [TIMESTAMPTZ]", min(sent.created_at) AS "saiu [TIMESTAMPTZ]"
FROM interacoes AS came
JOIN interacoes AS sent ON sent.conversation_id = came.conversation_id AND sent.tipo = 'saida' AND sent.created_at >= came.created_at
WHERE came.tipo = 'entrada' AND came.created_at > :hours_ago
  AND NOT EXISTS (SELECT 1 FROM mensagens_fora_horario AS night WHERE night.inbound_message_id = came.provider_message_id)
GROUP BY came.id, came.created_at HAVING min(sent.created_at) > :since
ORDER BY came.id DESC LIMIT :most;

-- read silence: messages that Julia has to answer, the oldest of them, and messages sent in the same period
SELECT waiting.esperam, waiting.desde AS "desde [TIMESTAMPTZ]",
       (SELECT count(*) FROM interacoes WHERE tipo = 'saida' AND created_at > :since) AS enviadas
FROM (
    SELECT count(*) AS esperam, min(came.created_at) AS desde
    FROM interacoes AS came JOIN conversations AS talk ON talk.id = came.conversation_id
    WHERE came.tipo = 'entrada' AND came.created_at > :since AND came.created_at <= :settled
      AND talk.controlled_by = 'ai' AND talk.status IN ('active', 'paused', 'escalated')
      AND (came.classe IS NULL OR came.classe <> 'opt_out')
      AND NOT EXISTS (SELECT 1 FROM mensagens_fora_horario AS night WHERE night.inbound_message_id = came.provider_message_id)
      AND NOT EXISTS (SELECT 1 FROM pendencias AS entry WHERE entry.cliente_id = came.cliente_id AND entry.resolvida_em IS NULL)
) AS waiting;

-- read offers: offers sent in a period, those of them that the doctor refused afterwards, and vacancies reserved in the period
SELECT (SELECT count(*) FROM fila_mensagens
        WHERE tipo = 'oferta' AND status = 'enviada' AND enviada_em > :since AND enviada_em <= :until) AS ofertas,
       (SELECT count(*) FROM fila_mensagens AS offer
        WHERE offer.tipo = 'oferta' AND offer.status = 'enviada' AND offer.enviada_em > :since AND offer.enviada_em <= :until
          AND EXISTS (SELECT 1 FROM interacoes AS came WHERE came.cliente_id = offer.cliente_id AND came.tipo = 'entrada'
                      AND came.classe = 'recusa' AND came.created_at >= offer.enviada_em)) AS recusas,
       (SELECT count(DISTINCT vaga_id) FROM vagas_historico WHERE para = 'reservada' AND em > :since AND em <= :until) AS reservas;

-- read scores: the mean score of the conversations evaluated since an instant; the job evaluates at night, so one day is needed
SELECT count(*) AS avaliadas, avg(coalesce(nota_corrigida, score_geral)) AS "nota [REAL]" FROM avaliacoes_qualidade
WHERE created_at > :since;

-- read durations: the duration of the simplest job, which calls the api and the database, in milliseconds
SELECT count(*) AS chamadas, avg(duration_ms) AS "media [REAL]" FROM job_executions
WHERE job_name = 'heartbeat' AND status = 'success' AND started_at > :hour_ago;
