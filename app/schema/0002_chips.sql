-- A chip is a WhatsApp number: one instance of the gateway. A listener or a scraper never sends.
CREATE TABLE chips (
    id                      UUID PRIMARY KEY,
    telefone                TEXT,
    instance_name           TEXT NOT NULL,
    tipo                    TEXT NOT NULL DEFAULT 'julia' CHECK (tipo IN ('julia', 'listener', 'scraper')),
    provider                TEXT NOT NULL DEFAULT 'evolution' CHECK (provider IN ('evolution', 'z-api', 'meta')),
    status                  TEXT NOT NULL DEFAULT 'pending'
                            CHECK (status IN ('provisioned', 'pending', 'warming', 'ready', 'active', 'degraded', 'cooldown',
                                              'recovery', 'paused', 'banned', 'cancelled')),
    evolution_connected     BOOLEAN NOT NULL DEFAULT FALSE,
    -- The gateway's own time of the newest word about the connection: an older one that comes later changes nothing.
    conexao_em              TIMESTAMPTZ,
    fase_warmup             TEXT NOT NULL DEFAULT 'repouso'
                            CHECK (fase_warmup IN ('repouso', 'setup', 'primeiros_contatos', 'expansao', 'pre_operacao',
                                                   'teste_graduacao', 'operacao')),
    warming_started_at      TIMESTAMPTZ,
    warming_day             INTEGER NOT NULL DEFAULT 0,
    trust_score             INTEGER NOT NULL DEFAULT 50 CHECK (trust_score BETWEEN 0 AND 100),
    trust_level             TEXT NOT NULL DEFAULT 'amarelo'
                            CHECK (trust_level IN ('verde', 'amarelo', 'laranja', 'vermelho', 'critico')),
    trust_factors           JSONB NOT NULL DEFAULT '{}',
    msgs_enviadas_total     INTEGER NOT NULL DEFAULT 0,
    msgs_enviadas_hoje      INTEGER NOT NULL DEFAULT 0,
    msgs_recebidas_total    INTEGER NOT NULL DEFAULT 0,
    msgs_recebidas_hoje     INTEGER NOT NULL DEFAULT 0,
    -- Shares of one, not percentages.
    taxa_resposta           DOUBLE PRECISION NOT NULL DEFAULT 0 CHECK (taxa_resposta BETWEEN 0 AND 1),
    taxa_delivery           DOUBLE PRECISION NOT NULL DEFAULT 0 CHECK (taxa_delivery BETWEEN 0 AND 1),
    taxa_block              DOUBLE PRECISION NOT NULL DEFAULT 0 CHECK (taxa_block BETWEEN 0 AND 1),
    conversas_bidirecionais INTEGER NOT NULL DEFAULT 0,
    tipos_midia_usados      JSONB NOT NULL DEFAULT '[]',
    grupos_count            INTEGER NOT NULL DEFAULT 0,
    erros_ultimas_24h       INTEGER NOT NULL DEFAULT 0,
    dias_sem_erro           INTEGER NOT NULL DEFAULT 0,
    ultimo_erro_em          TIMESTAMPTZ,
    pode_prospectar         BOOLEAN NOT NULL DEFAULT FALSE,
    pode_followup           BOOLEAN NOT NULL DEFAULT FALSE,
    pode_responder          BOOLEAN NOT NULL DEFAULT FALSE,
    limite_hora             INTEGER NOT NULL DEFAULT 0,
    limite_dia              INTEGER NOT NULL DEFAULT 0,
    delay_minimo_segundos   INTEGER NOT NULL DEFAULT 60,
    cooldown_until          TIMESTAMPTZ,
    banned_at               TIMESTAMPTZ,
    ban_reason              TEXT,
    created_at              TIMESTAMPTZ NOT NULL,
    updated_at              TIMESTAMPTZ NOT NULL,
    -- Whoever only reads groups may not be let loose on people by any write, whoever makes it.
    CHECK (tipo = 'julia' OR NOT (pode_prospectar OR pode_followup OR pode_responder))
);
CREATE UNIQUE INDEX chips_by_instance ON chips (instance_name);
CREATE UNIQUE INDEX chips_by_phone ON chips (telefone) WHERE telefone IS NOT NULL;
CREATE INDEX chips_that_send ON chips (trust_score DESC) WHERE status = 'active' AND tipo = 'julia';

CREATE TABLE chip_transitions (
    id           UUID PRIMARY KEY,
    chip_id      UUID NOT NULL REFERENCES chips (id),
    from_status  TEXT NOT NULL,
    to_status    TEXT NOT NULL,
    reason       TEXT NOT NULL,
    triggered_by TEXT NOT NULL,
    created_at   TIMESTAMPTZ NOT NULL
);
CREATE INDEX chip_transitions_of_chip ON chip_transitions (chip_id, created_at DESC);

CREATE TABLE chip_trust_history (
    id          UUID PRIMARY KEY,
    chip_id     UUID NOT NULL REFERENCES chips (id),
    trust_score INTEGER NOT NULL,
    trust_level TEXT NOT NULL,
    factors     JSONB NOT NULL,
    created_at  TIMESTAMPTZ NOT NULL
);
CREATE INDEX chip_trust_history_of_chip ON chip_trust_history (chip_id, created_at DESC);

-- One row for each chip and day of the operation's own zone.
CREATE TABLE chip_daily_snapshots (
    id             UUID PRIMARY KEY,
    chip_id        UUID NOT NULL REFERENCES chips (id),
    data           DATE NOT NULL,
    msgs_enviadas  INTEGER NOT NULL DEFAULT 0,
    msgs_recebidas INTEGER NOT NULL DEFAULT 0,
    msgs_entregues INTEGER NOT NULL DEFAULT 0,
    msgs_lidas     INTEGER NOT NULL DEFAULT 0,
    msgs_erro      INTEGER NOT NULL DEFAULT 0,
    taxa_resposta  DOUBLE PRECISION NOT NULL DEFAULT 0,
    taxa_delivery  DOUBLE PRECISION NOT NULL DEFAULT 0,
    taxa_block     DOUBLE PRECISION NOT NULL DEFAULT 0,
    trust_score    INTEGER NOT NULL,
    trust_level    TEXT NOT NULL,
    status         TEXT NOT NULL,
    created_at     TIMESTAMPTZ NOT NULL
);
CREATE UNIQUE INDEX chip_daily_snapshots_once ON chip_daily_snapshots (chip_id, data);
CREATE INDEX chip_daily_snapshots_by_day ON chip_daily_snapshots (data);
