-- Messages to doctors: a queue (app/contexts/mensagens/fila.py says which column means what).
CREATE TABLE fila_mensagens (
    id                  UUID PRIMARY KEY,
    cliente_id          UUID NOT NULL REFERENCES clientes (id),
    conversa_id         UUID REFERENCES conversations (id),
    campanha_id         BIGINT REFERENCES campanhas (id),
    telefone_destino    TEXT NOT NULL,
    conteudo            TEXT NOT NULL,
    tipo                TEXT NOT NULL DEFAULT 'lembrete',
    prioridade          INTEGER NOT NULL DEFAULT 5 CHECK (prioridade BETWEEN 0 AND 10),
    status              TEXT NOT NULL DEFAULT 'pendente'
                        CHECK (status IN ('pendente', 'processando', 'enviada', 'bloqueada', 'erro', 'cancelada')),
    agendar_para        TIMESTAMPTZ NOT NULL,
    -- While it is alive, a second one with the same key is not taken.
    chave               TEXT,
    metadata            JSONB NOT NULL DEFAULT '{}',
    tentativas          INTEGER NOT NULL DEFAULT 0,
    max_tentativas      INTEGER NOT NULL DEFAULT 3,
    quedas              INTEGER NOT NULL DEFAULT 0,
    erro                TEXT CHECK (length(erro) <= 500),
    processando_desde   TIMESTAMPTZ,
    enviada_em          TIMESTAMPTZ,
    finalizada_em       TIMESTAMPTZ,
    outcome             TEXT,
    outcome_reason_code TEXT,
    outcome_at          TIMESTAMPTZ,
    chip_id             UUID REFERENCES chips (id),
    provider_message_id TEXT,
    -- What is not known about the send. While it stands here nobody claims the row, whatever its status says:
    -- intent: about to be handed to the gateway; unknown: perhaps handed over; parked: a person must decide.
    envio_estado        TEXT CHECK (envio_estado IN ('intent', 'unknown', 'parked')),
    envio_desde         TIMESTAMPTZ,
    envio_hash          TEXT,
    cancelamento_pedido BOOLEAN NOT NULL DEFAULT FALSE,
    owner               TEXT,
    lease_until         TIMESTAMPTZ,
    fence               BIGINT NOT NULL DEFAULT 0,
    created_at          TIMESTAMPTZ NOT NULL,
    updated_at          TIMESTAMPTZ,
    CHECK ((envio_estado IS NULL) = (envio_desde IS NULL))
);
CREATE INDEX fila_mensagens_ready ON fila_mensagens (prioridade, agendar_para, id)
    WHERE status = 'pendente' AND lease_until IS NULL AND envio_estado IS NULL;
CREATE INDEX fila_mensagens_leased ON fila_mensagens (lease_until) WHERE lease_until IS NOT NULL;
CREATE UNIQUE INDEX fila_mensagens_alive ON fila_mensagens (chave) WHERE status IN ('pendente', 'processando');
CREATE INDEX fila_mensagens_in_doubt ON fila_mensagens (envio_desde) WHERE envio_estado IS NOT NULL;
CREATE UNIQUE INDEX fila_mensagens_sent ON fila_mensagens (provider_message_id) WHERE provider_message_id IS NOT NULL;
CREATE INDEX fila_mensagens_in_status ON fila_mensagens (status, created_at DESC);
CREATE INDEX fila_mensagens_waiting ON fila_mensagens (agendar_para) WHERE status = 'pendente';
CREATE INDEX fila_mensagens_stuck ON fila_mensagens (updated_at) WHERE status = 'processando';
CREATE INDEX fila_mensagens_of_doctor ON fila_mensagens (cliente_id, created_at DESC);
CREATE INDEX fila_mensagens_of_campaign ON fila_mensagens (campanha_id, status) WHERE campanha_id IS NOT NULL;
CREATE INDEX fila_mensagens_of_conversation ON fila_mensagens (conversa_id) WHERE conversa_id IS NOT NULL;
CREATE INDEX fila_mensagens_of_chip ON fila_mensagens (chip_id, enviada_em) WHERE chip_id IS NOT NULL;

CREATE TABLE fila_mensagens_dlq (
    id                   UUID PRIMARY KEY,
    mensagem_original_id UUID NOT NULL,
    cliente_id           UUID NOT NULL REFERENCES clientes (id),
    conversa_id          UUID,
    conteudo             TEXT NOT NULL,
    tipo                 TEXT NOT NULL,
    metadata             JSONB NOT NULL,
    tentativas           INTEGER NOT NULL,
    ultimo_erro          TEXT,
    outcome              TEXT,
    movido_para_dlq_em   TIMESTAMPTZ NOT NULL,
    reprocessado         BOOLEAN NOT NULL DEFAULT FALSE,
    reprocessado_em      TIMESTAMPTZ,
    reprocessado_por     TEXT
);
CREATE INDEX fila_mensagens_dlq_waiting ON fila_mensagens_dlq (movido_para_dlq_em DESC) WHERE NOT reprocessado;
CREATE INDEX fila_mensagens_dlq_of_message ON fila_mensagens_dlq (mensagem_original_id);
CREATE INDEX fila_mensagens_dlq_of_doctor ON fila_mensagens_dlq (cliente_id);
