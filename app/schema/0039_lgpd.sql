-- Requests of people about their data: an export, or an erasure with its receipt. digests: the keyed digests of the person's numbers.
-- alvo: the identifiers of the person while an erasure is not complete; empty afterwards, like for an export.
CREATE TABLE lgpd_pedidos (
    id           UUID PRIMARY KEY,
    tipo         TEXT NOT NULL CHECK (tipo IN ('exportar', 'apagar')),
    digests      JSONB NOT NULL,
    alvo         JSONB,
    por          TEXT NOT NULL,
    motivo       TEXT NOT NULL CHECK (length(motivo) <= 500),
    -- Rows by table: erased, and not erasable yet.
    contagens    JSONB NOT NULL,
    restam       JSONB NOT NULL,
    created_at   TIMESTAMPTZ NOT NULL,
    updated_at   TIMESTAMPTZ NOT NULL,
    concluido_em TIMESTAMPTZ,
    CHECK (concluido_em IS NULL OR alvo IS NULL)
);
CREATE INDEX lgpd_pedidos_by_time ON lgpd_pedidos (created_at DESC, id DESC);
CREATE INDEX lgpd_pedidos_open ON lgpd_pedidos (updated_at) WHERE concluido_em IS NULL;
