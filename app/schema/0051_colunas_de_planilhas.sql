-- The fields that a person chose for the titles of a spreadsheet. A later file with the same titles (forma) uses them too.
CREATE TABLE colunas_de_planilhas (
    forma      TEXT PRIMARY KEY,
    colunas    JSONB NOT NULL, -- {"dia da consulta": "data"}
    created_by TEXT,
    updated_at TIMESTAMPTZ NOT NULL
);

-- escolhidas: the choices used for this import, also when it resumes; colunas: the field of every title that was read.
ALTER TABLE importacoes ADD COLUMN escolhidas JSONB;
ALTER TABLE importacoes ADD COLUMN colunas JSONB;
