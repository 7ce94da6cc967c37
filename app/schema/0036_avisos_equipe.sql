-- A notice to the team that a conversation needs a person: a queue with one row for each destination. chave is unique for ever, so a
-- need is notified once. tentado_em is set before the request and cleared when its result is known, except after success.
CREATE TABLE avisos_equipe (
    id           UUID PRIMARY KEY,
    chave        TEXT NOT NULL,
    destino      TEXT NOT NULL CHECK (destino IN ('slack', 'webhook')),
    motivo       TEXT NOT NULL CHECK (length(motivo) <= 100),
    conversa_id  UUID REFERENCES conversations (id),
    -- No reference: old entries of the pending list are deleted.
    pendencia_id UUID,
    tentado_em   TIMESTAMPTZ,
    status       TEXT NOT NULL DEFAULT 'pendente'
                 CHECK (status IN ('pendente', 'enviando', 'enviado', 'erro', 'cancelado')),
    available_at TIMESTAMPTZ NOT NULL,
    tentativas   INTEGER NOT NULL DEFAULT 0,
    quedas       INTEGER NOT NULL DEFAULT 0,
    erro         TEXT CHECK (length(erro) <= 500),
    resultado    JSONB,
    owner        TEXT,
    lease_until  TIMESTAMPTZ,
    fence        BIGINT NOT NULL DEFAULT 0,
    created_at   TIMESTAMPTZ NOT NULL,
    finished_at  TIMESTAMPTZ
);
CREATE UNIQUE INDEX avisos_equipe_once ON avisos_equipe (chave);
CREATE INDEX avisos_equipe_ready ON avisos_equipe (available_at, id) WHERE status = 'pendente' AND lease_until IS NULL;
CREATE INDEX avisos_equipe_leased ON avisos_equipe (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX avisos_equipe_in_status ON avisos_equipe (status, created_at DESC);
CREATE INDEX avisos_equipe_over ON avisos_equipe (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX avisos_equipe_of_conversation ON avisos_equipe (conversa_id) WHERE conversa_id IS NOT NULL;
