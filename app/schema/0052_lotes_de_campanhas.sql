-- The batch that counts the campaign's messages and ends with the last of them; the campaign gets it when it starts.
ALTER TABLE campanhas ADD COLUMN lote_id UUID;
CREATE UNIQUE INDEX campanhas_by_batch ON campanhas (lote_id) WHERE lote_id IS NOT NULL;
