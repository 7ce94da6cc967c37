-- The file itself is kept until its last row is an appointment: whoever goes on with it reads it again, after this line.
ALTER TABLE importacoes ADD COLUMN linha INTEGER NOT NULL DEFAULT 0;
-- How often somebody had to go on.
ALTER TABLE importacoes ADD COLUMN retomadas INTEGER NOT NULL DEFAULT 0;

CREATE TABLE importacao_arquivos (
    importacao_id UUID PRIMARY KEY REFERENCES importacoes (id),
    conteudo      BYTEA NOT NULL
);

-- What was kept as blocks of rows is not gone on with: its sender sends it again, and nothing is doubled.
UPDATE importacoes SET status = 'falhou', finished_at = updated_at WHERE finished_at IS NULL;
DROP TABLE importacao_blocos;
