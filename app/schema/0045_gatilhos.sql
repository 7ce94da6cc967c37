-- Messages that a trigger queued without an operator: to whom, about which vacancy, whether it was sent, and how the doctor answered.
-- Offers are in vagas_ofertas.
CREATE TABLE gatilhos_contatos (
    mensagem_id   UUID PRIMARY KEY REFERENCES fila_mensagens (id),
    gatilho       TEXT NOT NULL CHECK (gatilho IN ('discovery_autonomo', 'reativacao_autonoma', 'feedback_autonomo')),
    cliente_id    UUID NOT NULL REFERENCES clientes (id),
    -- The shift of a feedback.
    vaga_id       UUID REFERENCES vagas (id),
    enviada_em    TIMESTAMPTZ,
    -- When it was decided that the message will not be sent.
    encerrada_em  TIMESTAMPTZ,
    respondida_em TIMESTAMPTZ,
    classe        TEXT,
    -- The answer to a feedback; indefinida: a person reads it.
    avaliacao     TEXT CHECK (avaliacao IN ('positiva', 'neutra', 'negativa', 'indefinida')),
    nota          INTEGER CHECK (nota BETWEEN 1 AND 5),
    created_at    TIMESTAMPTZ NOT NULL,
    CHECK ((gatilho = 'feedback_autonomo') = (vaga_id IS NOT NULL)),
    CHECK ((respondida_em IS NULL) = (classe IS NULL))
);
-- A shift is asked about once, for ever. A first contact is queued again only if the one before was not sent.
CREATE UNIQUE INDEX gatilhos_contatos_feedback ON gatilhos_contatos (vaga_id) WHERE vaga_id IS NOT NULL;
CREATE UNIQUE INDEX gatilhos_contatos_discovery ON gatilhos_contatos (cliente_id)
    WHERE gatilho = 'discovery_autonomo' AND encerrada_em IS NULL;
CREATE INDEX gatilhos_contatos_of_doctor ON gatilhos_contatos (cliente_id, gatilho, created_at);
CREATE INDEX gatilhos_contatos_by_time ON gatilhos_contatos (gatilho, created_at);
