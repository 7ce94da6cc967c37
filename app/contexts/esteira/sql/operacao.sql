-- read counts: number of rows by stage
SELECT estagio, count(*) AS items FROM fila_processamento_grupos GROUP BY estagio;

-- read failed_since: number of rows whose latest attempt since an instant failed
SELECT count(*) AS items FROM fila_processamento_grupos 
WHERE estagio IN ('erro', 'pendente', 'classificacao', 'extracao', 'normalizacao', 'deduplicacao', 'importacao') AND updated_at >= :since
  AND lease_until IS NULL AND (estagio = 'erro' OR com_erro = 1);

-- read dead: dead rows, oldest first
SELECT id, ultimo_estagio FROM fila_processamento_grupos
WHERE estagio = 'erro' AND (ultimo_estagio = :estagio OR :todos) ORDER BY finished_at LIMIT :limite;

-- read forgotten: pending messages without a row in the queue
SELECT mensagem.id FROM mensagens_grupo AS mensagem
WHERE mensagem.status = 'pendente' AND NOT EXISTS (
    SELECT 1 FROM fila_processamento_grupos AS fila WHERE fila.mensagem_id = mensagem.id)
ORDER BY mensagem.created_at LIMIT :limite;

-- read past: processed messages of a period that have a text, oldest first
SELECT mensagem.id FROM mensagens_grupo AS mensagem
WHERE mensagem.timestamp_msg >= :desde AND mensagem.timestamp_msg < :ate AND mensagem.texto NOT IN ('', '[removido]')
  AND mensagem.status IN ('heuristica_rejeitou', 'classificada_nao_oferta', 'erro_classificacao', 'descartada', 'processada')
  AND NOT EXISTS (
    SELECT 1 FROM fila_processamento_grupos AS fila WHERE fila.mensagem_id = mensagem.id
    AND (fila.estagio NOT IN ('finalizado', 'descartado') OR fila.chave LIKE :releitura))
ORDER BY mensagem.timestamp_msg, mensagem.id LIMIT :limite;

-- write drop_finished on sqlite: delete the finished rows of messages that are enqueued again
DELETE FROM fila_processamento_grupos WHERE vaga_grupo_id IS NULL AND lease_until IS NULL AND estagio IN ('finalizado', 'descartado')
  AND mensagem_id IN (SELECT value FROM json_each(:ids));

-- write drop_finished on postgres: delete the finished rows of messages that are enqueued again
DELETE FROM fila_processamento_grupos WHERE vaga_grupo_id IS NULL AND lease_until IS NULL AND estagio IN ('finalizado', 'descartado')
  AND mensagem_id IN (SELECT jsonb_array_elements_text(:ids)::uuid);

-- write prune: delete old rows that were finished, discarded or cancelled
DELETE FROM fila_processamento_grupos WHERE id IN (
    SELECT id FROM fila_processamento_grupos
    WHERE estagio IN ('finalizado', 'descartado', 'cancelado') AND updated_at < :before LIMIT :limite);

-- write expire: discard vacancies in review whose day is past, or that have had no day for too long
UPDATE vagas_grupo SET status = 'descartada', motivo_status = CASE WHEN data IS NULL THEN 'expirada' ELSE 'data_passada' END, updated_at = :now
WHERE status = 'aguardando_revisao' AND (data < :hoje OR data IS NULL AND created_at < :before);

-- write free_expired: free the keys of discarded vacancies
DELETE FROM vagas_grupo_chaves WHERE vaga_grupo_id IN (
    SELECT id FROM vagas_grupo WHERE status = 'descartada' AND motivo_status IN ('expirada', 'data_passada') AND updated_at = :now);

-- write prune_keys: delete keys of vacancies whose day is long past
DELETE FROM vagas_grupo_chaves WHERE hash_dedup IN (
    SELECT chave.hash_dedup FROM vagas_grupo_chaves AS chave JOIN vagas_grupo AS vaga ON vaga.id = chave.vaga_grupo_id
    WHERE chave.desde < :before AND vaga.data < :day LIMIT :limite);
