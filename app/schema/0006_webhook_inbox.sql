-- What the outside told us, kept before it is answered and worked on afterwards: a queue. A repeat is not taken.
CREATE TABLE webhook_inbox (
    id            UUID PRIMARY KEY,
    canal         TEXT NOT NULL,
    chave         TEXT NOT NULL,
    instance_name TEXT NOT NULL,
    evento        TEXT NOT NULL,
    payload       JSONB NOT NULL,
    status        TEXT NOT NULL DEFAULT 'pendente'
                  CHECK (status IN ('pendente', 'processando', 'processada', 'erro', 'cancelada')),
    available_at  TIMESTAMPTZ NOT NULL,
    tentativas    INTEGER NOT NULL DEFAULT 0,
    quedas        INTEGER NOT NULL DEFAULT 0,
    erro          TEXT CHECK (length(erro) <= 500),
    resultado     JSONB,
    owner         TEXT,
    lease_until   TIMESTAMPTZ,
    fence         BIGINT NOT NULL DEFAULT 0,
    created_at    TIMESTAMPTZ NOT NULL,
    finished_at   TIMESTAMPTZ
);
CREATE UNIQUE INDEX webhook_inbox_once ON webhook_inbox (chave);
CREATE INDEX webhook_inbox_ready ON webhook_inbox (available_at, id) WHERE status = 'pendente' AND lease_until IS NULL;
CREATE INDEX webhook_inbox_leased ON webhook_inbox (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX webhook_inbox_in_status ON webhook_inbox (status, created_at DESC);
CREATE INDEX webhook_inbox_over ON webhook_inbox (finished_at) WHERE finished_at IS NOT NULL;
