-- An inbound message that came outside the sending hours, once. Until noon of the next business day an answer to it counts as an
-- answer. The text is in interacoes. recebimento: the acknowledgement; retomada: the answer of the morning.
CREATE TABLE mensagens_fora_horario (
    id                   UUID PRIMARY KEY,
    cliente_id           UUID NOT NULL REFERENCES clientes (id),
    conversa_id          UUID NOT NULL REFERENCES conversations (id),
    inbound_message_id   TEXT NOT NULL,
    classe               TEXT,
    recebida_em          TIMESTAMPTZ NOT NULL,
    contexto             JSONB NOT NULL DEFAULT '{}',
    recebimento_id       UUID REFERENCES fila_mensagens (id),
    recebimento_em       TIMESTAMPTZ,
    recebimento_modelo   TEXT,
    retomada_id          UUID REFERENCES fila_mensagens (id),
    processada_em        TIMESTAMPTZ,
    processada_resultado TEXT,
    created_at           TIMESTAMPTZ NOT NULL
);
CREATE UNIQUE INDEX mensagens_fora_horario_once ON mensagens_fora_horario (inbound_message_id);
CREATE INDEX mensagens_fora_horario_a_retomar ON mensagens_fora_horario (recebida_em) WHERE processada_em IS NULL;
CREATE INDEX mensagens_fora_horario_of_conversation ON mensagens_fora_horario (conversa_id, recebimento_em);
CREATE INDEX mensagens_fora_horario_of_doctor ON mensagens_fora_horario (cliente_id);
CREATE INDEX mensagens_fora_horario_of_recebimento ON mensagens_fora_horario (recebimento_id) WHERE recebimento_id IS NOT NULL;
CREATE INDEX mensagens_fora_horario_of_retomada ON mensagens_fora_horario (retomada_id) WHERE retomada_id IS NOT NULL;
