-- The life of a vacancy: every change of its state, the doctors it was offered to, and the doctors who want it.
ALTER TABLE vagas ADD COLUMN criada_por TEXT;
-- Why it was cancelled; vencida: its start passed while a doctor was still wanted.
ALTER TABLE vagas ADD COLUMN cancelada_motivo TEXT;
CREATE INDEX vagas_of_doctor ON vagas (cliente_id, status) WHERE cliente_id IS NOT NULL;
CREATE INDEX vagas_to_confirm ON vagas (pendente_confirmacao_em) WHERE status = 'pendente_confirmacao';

-- ordem 1 is how it began: de is NULL. A change and its line are written in one transaction.
CREATE TABLE vagas_historico (
    vaga_id    UUID NOT NULL REFERENCES vagas (id),
    ordem      INTEGER NOT NULL CHECK (ordem >= 1),
    de         TEXT,
    para       TEXT NOT NULL,
    por        TEXT NOT NULL,
    motivo     TEXT NOT NULL CHECK (length(motivo) <= 500),
    cliente_id UUID REFERENCES clientes (id),
    em         TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (vaga_id, ordem),
    CHECK ((de IS NULL) = (ordem = 1))
);
CREATE INDEX vagas_historico_of_doctor ON vagas_historico (cliente_id) WHERE cliente_id IS NOT NULL;
INSERT INTO vagas_historico (vaga_id, ordem, de, para, por, motivo, cliente_id, em)
SELECT id, 1, NULL, status, 'migracao', 'situacao_inicial', cliente_id, created_at FROM vagas WHERE deleted_at IS NULL;

-- One offer of a vacancy to a doctor, for ever: the primary key refuses a second one.
CREATE TABLE vagas_ofertas (
    vaga_id     UUID NOT NULL REFERENCES vagas (id),
    cliente_id  UUID NOT NULL REFERENCES clientes (id),
    mensagem_id UUID NOT NULL REFERENCES fila_mensagens (id),
    por         TEXT NOT NULL,
    created_at  TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (vaga_id, cliente_id)
);
CREATE INDEX vagas_ofertas_of_doctor ON vagas_ofertas (cliente_id, created_at DESC);
CREATE INDEX vagas_ofertas_of_message ON vagas_ofertas (mensagem_id);

CREATE TABLE vagas_interesses (
    vaga_id    UUID NOT NULL REFERENCES vagas (id),
    cliente_id UUID NOT NULL REFERENCES clientes (id),
    por        TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (vaga_id, cliente_id)
);
CREATE INDEX vagas_interesses_of_doctor ON vagas_interesses (cliente_id, created_at DESC);
