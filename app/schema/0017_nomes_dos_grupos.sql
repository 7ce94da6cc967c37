-- What the gateway calls a group, and when it was asked last. regiao_origem: nome, where the region follows from the name; a region
-- without it was said by a person, and stays.
ALTER TABLE grupos_whatsapp ADD COLUMN apresentado_em TIMESTAMPTZ;
ALTER TABLE grupos_whatsapp ADD COLUMN regiao_origem TEXT;
CREATE INDEX grupos_whatsapp_to_ask ON grupos_whatsapp (apresentado_em, created_at) WHERE ativo;
