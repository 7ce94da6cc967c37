CREATE TABLE importacoes (
    id            UUID PRIMARY KEY,
    arquivo       TEXT NOT NULL,
    sha256        TEXT NOT NULL,
    -- recebendo: its rows are being kept; em_andamento: all are kept, and become appointments; concluida
    status        TEXT NOT NULL DEFAULT 'recebendo',
    total_rows    INTEGER NOT NULL DEFAULT 0,
    valid_rows    INTEGER NOT NULL DEFAULT 0,
    invalid_rows  INTEGER NOT NULL DEFAULT 0,
    skipped       INTEGER NOT NULL DEFAULT 0,
    imported      INTEGER NOT NULL DEFAULT 0,
    duplicates    INTEGER NOT NULL DEFAULT 0,
    cars_created  INTEGER NOT NULL DEFAULT 0,
    jobs_enqueued INTEGER NOT NULL DEFAULT 0,
    errors        JSONB,
    warnings      JSONB,
    created_by    TEXT,
    created_at    TIMESTAMPTZ NOT NULL,
    updated_at    TIMESTAMPTZ NOT NULL,
    finished_at   TIMESTAMPTZ
);
CREATE INDEX importacoes_open ON importacoes (updated_at) WHERE finished_at IS NULL;
CREATE INDEX importacoes_by_time ON importacoes (created_at DESC);

-- Rows of a file that are not appointments yet. A block goes with the transaction that made its appointments.
CREATE TABLE importacao_blocos (
    importacao_id UUID NOT NULL REFERENCES importacoes (id),
    bloco         INTEGER NOT NULL,
    linhas        JSONB NOT NULL,
    PRIMARY KEY (importacao_id, bloco)
);

CREATE TABLE carros (
    nome       TEXT PRIMARY KEY,
    created_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE appointments (
    id                    UUID PRIMARY KEY,
    -- The same for one appointment, however often its row comes.
    chave                 TEXT NOT NULL UNIQUE,
    importacao_id         UUID,
    linha                 INTEGER,
    nome_paciente         TEXT NOT NULL,
    nome_marca            TEXT,
    nome_unidade          TEXT,
    data_agendamento      TEXT, -- 2026-03-11
    hora_agendamento      TEXT, -- 14:30
    status                TEXT NOT NULL DEFAULT 'Pendente',
    telefone              TEXT,
    observacoes           TEXT,
    exames                TEXT,
    carro                 TEXT,
    canal_confirmacao     TEXT,
    data_confirmacao      TEXT,
    hora_confirmacao      TEXT,
    cep                   TEXT,
    endereco_coleta       TEXT,
    endereco_completo     TEXT,
    documento_completo    TEXT,
    numero_convenio       TEXT,
    nome_convenio         TEXT,
    carteira_convenio     TEXT,
    especialidade         TEXT,
    origem_id             TEXT,
    -- What the reading is made from: whoever read something else writes nothing.
    fonte                 TEXT NOT NULL,
    normalization_status  TEXT NOT NULL DEFAULT 'pending',
    normalization_job_id  UUID,
    normalization_error   TEXT,
    endereco_normalizado  JSONB,
    documento_normalizado JSONB,
    cpf                   TEXT,
    rg                    TEXT,
    normalized_at         TIMESTAMPTZ,
    created_at            TIMESTAMPTZ NOT NULL,
    updated_at            TIMESTAMPTZ NOT NULL
);
CREATE INDEX appointments_by_status ON appointments (normalization_status, updated_at);
CREATE INDEX appointments_by_day ON appointments (data_agendamento, hora_agendamento, id);
CREATE INDEX appointments_by_job ON appointments (normalization_job_id) WHERE normalization_job_id IS NOT NULL;
CREATE INDEX appointments_of_import ON appointments (importacao_id, linha) WHERE importacao_id IS NOT NULL;
