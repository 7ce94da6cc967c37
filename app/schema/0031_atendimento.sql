-- Which person of the team leads a conversation (controlled_by = 'human'). NULL: a person is needed and none has taken it over yet.
ALTER TABLE conversations ADD COLUMN responsavel TEXT;
ALTER TABLE conversations ADD COLUMN encerrada_em TIMESTAMPTZ;
CREATE INDEX conversations_with_person ON conversations (updated_at) WHERE controlled_by = 'human';
CREATE INDEX conversations_ended ON conversations (encerrada_em) WHERE encerrada_em IS NOT NULL;

-- Every change of who leads a conversation, in order.
CREATE TABLE conversas_historico (
    conversa_id UUID NOT NULL REFERENCES conversations (id),
    ordem       INTEGER NOT NULL,
    acao        TEXT NOT NULL CHECK (acao IN ('escalar', 'assumir', 'devolver', 'encerrar')),
    por         TEXT NOT NULL,
    motivo      TEXT NOT NULL CHECK (length(motivo) <= 500),
    -- Messages of Julia that continue or were cancelled with this change.
    mensagens   INTEGER NOT NULL DEFAULT 0,
    em          TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (conversa_id, ordem)
);
