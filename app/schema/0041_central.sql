-- The help desk (Chatwoot). chatwoot_desde: the first message that it shows; chatwoot_estado: its last known state;
-- chatwoot_visto_em: the time, by its clock, of its last change that was processed.
ALTER TABLE conversations ADD COLUMN chatwoot_desde TIMESTAMPTZ;
ALTER TABLE conversations ADD COLUMN chatwoot_estado TEXT CHECK (chatwoot_estado IN ('open', 'resolved'));
ALTER TABLE conversations ADD COLUMN chatwoot_visto_em TIMESTAMPTZ;
CREATE UNIQUE INDEX conversations_in_central ON conversations (chatwoot_conversation_id) WHERE chatwoot_conversation_id IS NOT NULL;

-- Messages that the help desk has.
CREATE TABLE central_mensagens (
    interacao_id BIGINT PRIMARY KEY REFERENCES interacoes (id),
    created_at   TIMESTAMPTZ NOT NULL
);

-- Conversations to compare with the help desk: a queue; one row of a conversation runs at a time. nota is a private note for the team
-- about the queued message nota_de.
CREATE TABLE central_fila (
    id           UUID PRIMARY KEY,
    conversa_id  UUID NOT NULL REFERENCES conversations (id),
    -- The conversation as text, because PostgreSQL has no order of UUIDs for the turns of groups.
    grupo        TEXT NOT NULL,
    nota         TEXT CHECK (length(nota) <= 200),
    nota_de      UUID,
    status       TEXT NOT NULL DEFAULT 'pendente'
                 CHECK (status IN ('pendente', 'processando', 'processada', 'erro', 'cancelada')),
    available_at TIMESTAMPTZ NOT NULL,
    tentativas   INTEGER NOT NULL DEFAULT 0,
    quedas       INTEGER NOT NULL DEFAULT 0,
    erro         TEXT CHECK (length(erro) <= 500),
    owner        TEXT,
    lease_until  TIMESTAMPTZ,
    fence        BIGINT NOT NULL DEFAULT 0,
    created_at   TIMESTAMPTZ NOT NULL,
    finished_at  TIMESTAMPTZ
);
CREATE INDEX central_fila_ready ON central_fila (grupo, available_at, id) WHERE status = 'pendente' AND lease_until IS NULL;
CREATE INDEX central_fila_leased ON central_fila (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX central_fila_in_status ON central_fila (status, created_at DESC);
CREATE INDEX central_fila_over ON central_fila (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX central_fila_of_conversation ON central_fila (conversa_id);
