-- Each version of a document that operators write: the briefing (documento briefing) and one template for each type of campaign.
-- A version that cannot be read is recorded too (invalido); it changes no directive.
CREATE TABLE briefing_sync_log (
    id           UUID PRIMARY KEY,
    documento    TEXT NOT NULL,
    origem       TEXT NOT NULL CHECK (origem IN ('pasta', 'google_docs')),
    doc_title    TEXT NOT NULL,
    doc_hash     TEXT NOT NULL,
    conteudo_raw TEXT NOT NULL,
    parseado     JSONB NOT NULL,
    avisos       JSONB NOT NULL,
    resultado    TEXT NOT NULL CHECK (resultado IN ('aplicado', 'invalido')),
    created_at   TIMESTAMPTZ NOT NULL
);
CREATE INDEX briefing_sync_log_of_document ON briefing_sync_log (documento, created_at DESC);

-- Instructions from these documents, for the texts that Julia writes. A new version ends the one before it; rows are not changed otherwise.
CREATE TABLE diretrizes (
    id           UUID PRIMARY KEY,
    tipo         TEXT NOT NULL,
    versao       INTEGER NOT NULL CHECK (versao >= 1),
    conteudo     JSONB NOT NULL,
    prioridade   INTEGER NOT NULL,
    sync_id      UUID NOT NULL REFERENCES briefing_sync_log (id),
    documento    TEXT NOT NULL,
    created_at   TIMESTAMPTZ NOT NULL,
    encerrada_em TIMESTAMPTZ
);
CREATE UNIQUE INDEX diretrizes_versions ON diretrizes (tipo, versao);
CREATE UNIQUE INDEX diretrizes_active ON diretrizes (tipo) WHERE encerrada_em IS NULL;
CREATE INDEX diretrizes_of_sync ON diretrizes (sync_id);
