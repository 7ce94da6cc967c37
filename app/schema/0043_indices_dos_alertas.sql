-- 0038 rebuilds conversas_historico on SQLite, which drops the index of 0037.
CREATE INDEX IF NOT EXISTS conversas_historico_by_time ON conversas_historico (em);
-- SQLite prefers an equality: with the type in front, it reads only the sent offers of the period.
DROP INDEX fila_mensagens_offers_sent;
CREATE INDEX fila_mensagens_sent_by_type ON fila_mensagens (tipo, enviada_em) WHERE status = 'enviada';
