-- The alerts count the hand-overs and the sent offers of a period.
CREATE INDEX conversas_historico_by_time ON conversas_historico (em);
CREATE INDEX fila_mensagens_offers_sent ON fila_mensagens (enviada_em) WHERE tipo = 'oferta' AND status = 'enviada';
