-- Since when it is decided whom a campaign is for, and since when all of them wait in the queue: who crashes in between goes on there.
ALTER TABLE campanhas ADD COLUMN publico_em TIMESTAMPTZ;
ALTER TABLE campanhas ADD COLUMN enfileirada_em TIMESTAMPTZ;
-- Why it does not go on, for people.
ALTER TABLE campanhas ADD COLUMN erro TEXT;
CREATE INDEX campanhas_by_status ON campanhas (status, id DESC);

-- In which order people were considered.
ALTER TABLE campanha_destinatarios ADD COLUMN posicao INTEGER NOT NULL DEFAULT 0;
CREATE INDEX campanha_destinatarios_waiting ON campanha_destinatarios (campanha_id, posicao) WHERE situacao = 'selecionado';
CREATE INDEX campanha_destinatarios_in_order ON campanha_destinatarios (campanha_id, posicao);

-- Each counts once for a doctor and a campaign, however often it is told.
ALTER TABLE campaign_contact_history ADD COLUMN entregue_em TIMESTAMPTZ;
ALTER TABLE campaign_contact_history ADD COLUMN respondido_em TIMESTAMPTZ;

-- How a campaign goes is read from the index alone.
DROP INDEX fila_mensagens_of_campaign;
CREATE INDEX fila_mensagens_of_campaign ON fila_mensagens (campanha_id, status, outcome) WHERE campanha_id IS NOT NULL;
CREATE INDEX fila_mensagens_by_sending ON fila_mensagens (enviada_em) WHERE status = 'enviada';
CREATE INDEX fila_mensagens_by_failing ON fila_mensagens (finalizada_em) WHERE status = 'erro';
