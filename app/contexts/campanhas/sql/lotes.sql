-- read unfinished on sqlite: batches whose campaign is paused, or has messages to queue, to send or in doubt
SELECT lote_id FROM campanhas AS campanha
WHERE lote_id IN ({lotes}) AND (status = 'pausada' OR (status = 'ativa' AND enfileirada_em IS NULL)
  OR EXISTS (SELECT 1 FROM fila_mensagens AS message WHERE message.campanha_id = campanha.id
             AND message.status IN ('pendente', 'processando'))
  OR EXISTS (SELECT 1 FROM fila_mensagens AS message INDEXED BY fila_mensagens_in_doubt
             WHERE message.envio_estado IS NOT NULL AND message.campanha_id = campanha.id));

-- read unfinished on postgres: batches whose campaign is paused, or has messages to queue, to send or in doubt
SELECT lote_id FROM campanhas AS campanha
WHERE lote_id IN ({lotes}) AND (status = 'pausada' OR (status = 'ativa' AND enfileirada_em IS NULL)
  OR EXISTS (SELECT 1 FROM fila_mensagens AS message WHERE message.campanha_id = campanha.id
             AND message.status IN ('pendente', 'processando'))
  OR EXISTS (SELECT 1 FROM fila_mensagens AS message WHERE message.envio_estado IS NOT NULL AND message.campanha_id = campanha.id));

-- read counts: recipients that are not queued yet, and messages by status
SELECT campanha.lote_id, 'selecionado' AS status, count(*) AS quantas
FROM campanhas AS campanha JOIN campanha_destinatarios AS someone ON someone.campanha_id = campanha.id
WHERE campanha.lote_id IN ({lotes}) AND someone.situacao = 'selecionado' GROUP BY campanha.lote_id
UNION ALL
SELECT campanha.lote_id, message.status, count(*)
FROM campanhas AS campanha JOIN fila_mensagens AS message ON message.campanha_id = campanha.id
WHERE campanha.lote_id IN ({lotes}) GROUP BY campanha.lote_id, message.status;

-- read campaigns: the campaign of a batch
SELECT id FROM campanhas WHERE lote_id = :lote;

-- write cancel: cancel a campaign that has not ended
UPDATE campanhas SET status = 'cancelada', erro = NULL, updated_at = :now
WHERE lote_id = :lote AND status IN ('ativa', 'pausada') RETURNING id;

-- write leave_out: exclude recipients whose message is not queued yet
UPDATE campanha_destinatarios SET situacao = 'excluido', motivo = :motivo, updated_at = :now
WHERE campanha_id = :id AND situacao = 'selecionado';

-- write conclude: complete a campaign whose messages have all ended
UPDATE campanhas SET status = 'concluida', concluida_em = :now, updated_at = :now
WHERE lote_id = :lote AND status IN ('ativa', 'pausada') RETURNING id, enviados;
