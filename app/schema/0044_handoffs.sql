-- An external hand-off: the person who posted a vacancy in a group (divulgador_id) confirms that a doctor (cliente_id) takes it.
-- pending: the first message to that person is queued; contacted: it was sent.
CREATE TABLE external_handoffs (
    id               UUID PRIMARY KEY,
    vaga_id          UUID NOT NULL REFERENCES vagas (id),
    cliente_id       UUID NOT NULL REFERENCES clientes (id),
    divulgador_id    UUID NOT NULL REFERENCES clientes (id),
    -- The doctor's conversation; NULL if an operator opened the hand-off.
    conversa_id      UUID REFERENCES conversations (id),
    status           TEXT NOT NULL DEFAULT 'pending'
                     CHECK (status IN ('pending', 'contacted', 'confirmed', 'not_confirmed', 'expired')),
    reserved_until   TIMESTAMPTZ NOT NULL,
    mensagem_id      UUID NOT NULL REFERENCES fila_mensagens (id),
    contatado_em     TIMESTAMPTZ,
    -- Highest number of a queued reminder, so that each number is queued once.
    lembrete_pedido  INTEGER NOT NULL DEFAULT 0 CHECK (lembrete_pedido BETWEEN 0 AND 3),
    lembrete_id      UUID REFERENCES fila_mensagens (id),
    -- Reminders that were sent.
    followup_count   INTEGER NOT NULL DEFAULT 0,
    last_followup_at TIMESTAMPTZ,
    decidido_em      TIMESTAMPTZ,
    decidido_via     TEXT CHECK (decidido_via IN ('link', 'resposta', 'pessoa', 'prazo', 'vaga')),
    decidido_por     TEXT,
    created_at       TIMESTAMPTZ NOT NULL,
    updated_at       TIMESTAMPTZ NOT NULL,
    CHECK ((status IN ('pending', 'contacted')) = (decidido_em IS NULL)),
    CHECK ((decidido_em IS NULL) = (decidido_via IS NULL) AND (decidido_em IS NULL) = (decidido_por IS NULL))
);
-- The poster is asked about one doctor of a vacancy at a time, and about each doctor once.
CREATE UNIQUE INDEX external_handoffs_open ON external_handoffs (vaga_id) WHERE status IN ('pending', 'contacted');
CREATE UNIQUE INDEX external_handoffs_once ON external_handoffs (vaga_id, cliente_id);
CREATE INDEX external_handoffs_by_age ON external_handoffs (created_at) WHERE status IN ('pending', 'contacted');
CREATE INDEX external_handoffs_of_doctor ON external_handoffs (cliente_id);
CREATE INDEX external_handoffs_of_poster ON external_handoffs (divulgador_id);
CREATE INDEX external_handoffs_of_conversation ON external_handoffs (conversa_id) WHERE conversa_id IS NOT NULL;
CREATE INDEX external_handoffs_of_message ON external_handoffs (mensagem_id);
CREATE INDEX external_handoffs_of_reminder ON external_handoffs (lembrete_id) WHERE lembrete_id IS NOT NULL;

-- Every change of a hand-off. ordem 1 is the opening: de is NULL.
CREATE TABLE external_handoffs_historico (
    handoff_id UUID NOT NULL REFERENCES external_handoffs (id),
    ordem      INTEGER NOT NULL CHECK (ordem >= 1),
    de         TEXT,
    para       TEXT NOT NULL,
    por        TEXT NOT NULL,
    motivo     TEXT NOT NULL CHECK (length(motivo) <= 500),
    em         TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (handoff_id, ordem),
    CHECK ((de IS NULL) = (ordem = 1))
);

-- Confirmation links that were used: each decides once.
CREATE TABLE handoff_used_tokens (
    jti        UUID PRIMARY KEY,
    handoff_id UUID NOT NULL REFERENCES external_handoffs (id),
    usado_em   TIMESTAMPTZ NOT NULL
);
CREATE INDEX handoff_used_tokens_of_handoff ON handoff_used_tokens (handoff_id);
