-- When a message was meant to leave first: waiting moves agendar_para, and its age is counted from here.
ALTER TABLE fila_mensagens ADD COLUMN devida_em TIMESTAMPTZ;
-- How often somebody looked for a message whose answer was lost.
ALTER TABLE fila_mensagens ADD COLUMN envio_buscas INTEGER NOT NULL DEFAULT 0;
-- The tokens of the rate limits that the send holds while it is not known what became of it.
ALTER TABLE fila_mensagens ADD COLUMN envio_reserva UUID;
CREATE INDEX fila_mensagens_same_words ON fila_mensagens (cliente_id, envio_hash) WHERE envio_hash IS NOT NULL;
