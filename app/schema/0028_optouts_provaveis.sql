-- How the reader of inbound texts read a message; NULL: it came before there was one, or it has no text of a person.
ALTER TABLE interacoes ADD COLUMN classe TEXT
    CHECK (classe IN ('aceite', 'recusa', 'pergunta', 'humano', 'objecao', 'confirmacao', 'opt_out', 'outro'));
ALTER TABLE interacoes ADD COLUMN opt_out TEXT CHECK (opt_out IN ('certo', 'provavel', 'nao'));

-- A person who probably asked for no more messages. While decisao is NULL nothing leaves for the number on Julia's own initiative.
CREATE TABLE optouts_provaveis (
    id                  UUID PRIMARY KEY,
    telefone            TEXT NOT NULL,
    telefone_chave      TEXT NOT NULL,
    cliente_id          UUID REFERENCES clientes (id),
    provider_message_id TEXT NOT NULL,
    regra               TEXT NOT NULL,
    decisao             TEXT CHECK (decisao IN ('parar', 'seguir')),
    por                 TEXT,
    motivo              TEXT,
    decidida_em         TIMESTAMPTZ,
    created_at          TIMESTAMPTZ NOT NULL
);
-- One question about a person at a time.
CREATE UNIQUE INDEX optouts_provaveis_abertos ON optouts_provaveis (telefone_chave) WHERE decisao IS NULL;
CREATE INDEX optouts_provaveis_by_time ON optouts_provaveis (created_at) WHERE decisao IS NULL;
CREATE INDEX optouts_provaveis_of_doctor ON optouts_provaveis (cliente_id) WHERE cliente_id IS NOT NULL;
