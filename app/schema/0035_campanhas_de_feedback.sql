-- A campaign may ask for feedback. SQLite cannot change a CHECK, so the column is made again there; it moves to the end of the table.
-- on sqlite
ALTER TABLE campanhas ADD COLUMN tipo_de_agora TEXT NOT NULL DEFAULT 'discovery'
    CHECK (tipo_de_agora IN ('discovery', 'oferta', 'oferta_plantao', 'reativacao', 'followup', 'feedback'));
UPDATE campanhas SET tipo_de_agora = tipo_campanha;
ALTER TABLE campanhas DROP COLUMN tipo_campanha;
ALTER TABLE campanhas RENAME COLUMN tipo_de_agora TO tipo_campanha;
-- on postgres
ALTER TABLE campanhas DROP CONSTRAINT campanhas_tipo_campanha_check;
ALTER TABLE campanhas ADD CONSTRAINT campanhas_tipo_campanha_check
    CHECK (tipo_campanha IN ('discovery', 'oferta', 'oferta_plantao', 'reativacao', 'followup', 'feedback'));
