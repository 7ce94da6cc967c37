-- An inbound message that no rule answered: a person reads it. quem is the number without the ninth digit, or the hidden
-- address while its number is unknown; the text is in interacoes.
CREATE TABLE pendencias (
    id                  UUID PRIMARY KEY,
    quem                TEXT NOT NULL,
    telefone            TEXT,
    cliente_id          UUID REFERENCES clientes (id),
    conversa_id         UUID REFERENCES conversations (id),
    provider_message_id TEXT NOT NULL,
    motivo              TEXT NOT NULL,
    -- Inbound messages of this person since it was opened.
    mensagens           INTEGER NOT NULL DEFAULT 1,
    ultima_em           TIMESTAMPTZ NOT NULL,
    resolvida_em        TIMESTAMPTZ,
    por                 TEXT,
    resolucao           TEXT CHECK (length(resolucao) <= 500),
    created_at          TIMESTAMPTZ NOT NULL,
    CHECK ((resolvida_em IS NULL) = (por IS NULL))
);
-- One for each person at a time.
CREATE UNIQUE INDEX pendencias_abertas ON pendencias (quem) WHERE resolvida_em IS NULL;
CREATE INDEX pendencias_by_time ON pendencias (created_at) WHERE resolvida_em IS NULL;
CREATE INDEX pendencias_resolvidas ON pendencias (resolvida_em) WHERE resolvida_em IS NOT NULL;
CREATE INDEX pendencias_of_doctor ON pendencias (cliente_id) WHERE cliente_id IS NOT NULL;
CREATE INDEX pendencias_of_conversation ON pendencias (conversa_id) WHERE conversa_id IS NOT NULL;
