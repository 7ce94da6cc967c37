-- The groups pipeline: its queue, what it reads out of messages, and the vacancies that come of it.

-- How a message was judged, with the limits that counted then, and how long each look took.
ALTER TABLE mensagens_grupo ADD COLUMN categoria TEXT;
ALTER TABLE mensagens_grupo ADD COLUMN motivo_classificacao TEXT;
ALTER TABLE mensagens_grupo ADD COLUMN limiar_heuristica DOUBLE PRECISION;
ALTER TABLE mensagens_grupo ADD COLUMN limiar_classificacao DOUBLE PRECISION;
ALTER TABLE mensagens_grupo ADD COLUMN heuristica_ms DOUBLE PRECISION;
ALTER TABLE mensagens_grupo ADD COLUMN classificacao_ms DOUBLE PRECISION;
ALTER TABLE mensagens_grupo ADD COLUMN extracao_ms DOUBLE PRECISION;
-- Vagas of it that are still on their way; with the last of them it is processada.
ALTER TABLE mensagens_grupo ADD COLUMN vagas_a_caminho INTEGER NOT NULL DEFAULT 0;
CREATE INDEX mensagens_grupo_by_time ON mensagens_grupo (created_at);

CREATE TABLE hospitais (
    id                    UUID PRIMARY KEY,
    nome                  TEXT NOT NULL,
    logradouro            TEXT,
    numero                TEXT,
    bairro                TEXT,
    cidade                TEXT,
    estado                TEXT CHECK (length(estado) = 2),
    cep                   TEXT,
    endereco_formatado    TEXT,
    latitude              DOUBLE PRECISION,
    longitude             DOUBLE PRECISION,
    cnes_codigo           TEXT,
    google_place_id       TEXT,
    telefone              TEXT,
    criado_automaticamente BOOLEAN NOT NULL DEFAULT FALSE,
    precisa_revisao       BOOLEAN NOT NULL DEFAULT FALSE,
    revisado_em           TIMESTAMPTZ,
    revisado_por          TEXT,
    created_at            TIMESTAMPTZ NOT NULL
);
CREATE INDEX hospitais_to_review ON hospitais (created_at) WHERE precisa_revisao;

-- alias_normalizado: small letters, no accents, no punctuation. One name may mean hospitals in several cities.
CREATE TABLE hospitais_alias (
    hospital_id       UUID NOT NULL REFERENCES hospitais (id),
    alias             TEXT NOT NULL,
    alias_normalizado TEXT NOT NULL,
    origem            TEXT NOT NULL DEFAULT 'seed' CHECK (origem IN ('seed', 'sistema_auto', 'gestor')),
    criado_por        TEXT,
    confianca         DOUBLE PRECISION NOT NULL DEFAULT 1.0 CHECK (confianca BETWEEN 0 AND 1),
    confirmado        BOOLEAN NOT NULL DEFAULT FALSE,
    vezes_usado       INTEGER NOT NULL DEFAULT 0,
    created_at        TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (hospital_id, alias_normalizado)
);
CREATE INDEX hospitais_alias_by_name ON hospitais_alias (alias_normalizado);

CREATE TABLE hospitais_bloqueados (
    hospital_id   UUID PRIMARY KEY REFERENCES hospitais (id),
    motivo        TEXT NOT NULL,
    bloqueado_por TEXT NOT NULL,
    bloqueado_em  TIMESTAMPTZ NOT NULL,
    status        TEXT NOT NULL DEFAULT 'bloqueado' CHECK (status IN ('bloqueado', 'liberado'))
);

CREATE TABLE especialidades (
    id         UUID PRIMARY KEY,
    nome       TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL
);
CREATE UNIQUE INDEX especialidades_by_name ON especialidades (nome);

CREATE TABLE especialidades_alias (
    especialidade_id  UUID NOT NULL REFERENCES especialidades (id),
    alias             TEXT NOT NULL,
    alias_normalizado TEXT NOT NULL,
    origem            TEXT NOT NULL DEFAULT 'seed' CHECK (origem IN ('seed', 'sistema_auto', 'gestor')),
    criado_por        TEXT,
    confianca         DOUBLE PRECISION NOT NULL DEFAULT 1.0 CHECK (confianca BETWEEN 0 AND 1),
    confirmado        BOOLEAN NOT NULL DEFAULT FALSE,
    vezes_usado       INTEGER NOT NULL DEFAULT 0,
    created_at        TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (especialidade_id, alias_normalizado)
);

-- Another number whenever a name was added: whoever keeps the names in memory looks again.
CREATE TABLE vocabulario_grupos (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    versao BIGINT NOT NULL
);
INSERT INTO vocabulario_grupos (id, versao) VALUES (1, 0);

CREATE TABLE periodos (
    id   INTEGER PRIMARY KEY,
    nome TEXT NOT NULL
);
INSERT INTO periodos (id, nome) VALUES
    (1, 'Diurno'), (2, 'Vespertino'), (3, 'Noturno'), (4, 'Cinderela'), (5, 'Meio período (manhã)'),
    (6, 'Meio período (tarde)'), (7, '24 horas');

CREATE TABLE vagas_grupo (
    id                        UUID PRIMARY KEY,
    mensagem_id               UUID NOT NULL REFERENCES mensagens_grupo (id),
    ordinal                   INTEGER NOT NULL,
    grupo_origem_id           UUID NOT NULL REFERENCES grupos_whatsapp (id),
    contato_responsavel_id    UUID REFERENCES contatos_grupo (id),
    hospital_raw              TEXT,
    especialidade_raw         TEXT,
    periodo_raw               TEXT,
    forma_pagamento_raw       TEXT,
    observacoes_raw           TEXT,
    cidade                    TEXT,
    estado                    TEXT,
    data                      DATE,
    dia_semana                TEXT,
    hora_inicio               TEXT,
    hora_fim                  TEXT,
    valor                     DOUBLE PRECISION,
    valor_tipo                TEXT CHECK (valor_tipo IN ('fixo', 'a_combinar', 'faixa')),
    numero_vagas              INTEGER NOT NULL DEFAULT 1,
    contato_nome              TEXT,
    contato_whatsapp          TEXT,
    -- Where in the message each field stands: {"hospital": [10, 30], …}.
    trechos                   JSONB NOT NULL DEFAULT '{}',
    hospital_id               UUID REFERENCES hospitais (id),
    especialidade_id          UUID REFERENCES especialidades (id),
    periodo_id                INTEGER REFERENCES periodos (id),
    hospital_match_score      DOUBLE PRECISION,
    especialidade_match_score DOUBLE PRECISION,
    hospital_criado           BOOLEAN NOT NULL DEFAULT FALSE,
    confianca_geral           DOUBLE PRECISION,
    confianca_hospital        DOUBLE PRECISION,
    confianca_especialidade   DOUBLE PRECISION,
    confianca_data            DOUBLE PRECISION,
    confianca_valor           DOUBLE PRECISION,
    campos_faltando           JSONB NOT NULL DEFAULT '[]',
    dados_minimos_ok          BOOLEAN,
    data_valida               BOOLEAN,
    hash_dedup                TEXT,
    eh_duplicada              BOOLEAN NOT NULL DEFAULT FALSE,
    duplicada_de              UUID REFERENCES vagas_grupo (id),
    qtd_fontes                INTEGER NOT NULL DEFAULT 0,
    score_importacao          DOUBLE PRECISION,
    limiar_importacao         DOUBLE PRECISION,
    limiar_revisao            DOUBLE PRECISION,
    status                    TEXT NOT NULL DEFAULT 'nova'
                              CHECK (status IN ('nova', 'normalizada', 'aguardando_revisao', 'duplicada', 'importada',
                                                'descartada', 'rejeitada')),
    motivo_status             TEXT,
    vaga_importada_id         UUID,
    importada_em              TIMESTAMPTZ,
    revisada_por              TEXT,
    revisada_em               TIMESTAMPTZ,
    notas_revisao             TEXT,
    dm_recovery_sent_at       TIMESTAMPTZ,
    dm_recovery_status        TEXT,
    created_at                TIMESTAMPTZ NOT NULL,
    updated_at                TIMESTAMPTZ NOT NULL
);
CREATE UNIQUE INDEX vagas_grupo_once ON vagas_grupo (mensagem_id, ordinal);
CREATE INDEX vagas_grupo_in_status ON vagas_grupo (status, created_at DESC);
CREATE INDEX vagas_grupo_by_time ON vagas_grupo (created_at);
CREATE INDEX vagas_grupo_of_group ON vagas_grupo (grupo_origem_id, created_at);
CREATE INDEX vagas_grupo_of_hospital ON vagas_grupo (hospital_id) WHERE hospital_id IS NOT NULL;

-- Whose a key is: taken by one vaga alone, however many come at once.
CREATE TABLE vagas_grupo_chaves (
    hash_dedup    TEXT PRIMARY KEY,
    vaga_grupo_id UUID NOT NULL REFERENCES vagas_grupo (id),
    desde         TIMESTAMPTZ NOT NULL
);
CREATE INDEX vagas_grupo_chaves_by_time ON vagas_grupo_chaves (desde);

-- Every message that told of a vaga, the first as well.
CREATE TABLE vagas_grupo_fontes (
    vaga_grupo_id   UUID NOT NULL REFERENCES vagas_grupo (id),
    mensagem_id     UUID NOT NULL REFERENCES mensagens_grupo (id),
    grupo_id        UUID NOT NULL REFERENCES grupos_whatsapp (id),
    contato_id      UUID REFERENCES contatos_grupo (id),
    ordem           INTEGER NOT NULL,
    texto_original  TEXT NOT NULL CHECK (length(texto_original) <= 500),
    valor_informado DOUBLE PRECISION,
    contato_informado TEXT,
    created_at      TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (vaga_grupo_id, mensagem_id)
);
CREATE INDEX vagas_grupo_fontes_of_message ON vagas_grupo_fontes (mensagem_id);

CREATE TABLE vagas (
    id                      UUID PRIMARY KEY,
    hospital_id             UUID NOT NULL REFERENCES hospitais (id),
    especialidade_id        UUID NOT NULL REFERENCES especialidades (id),
    periodo_id              INTEGER REFERENCES periodos (id),
    data                    DATE NOT NULL,
    hora_inicio             TEXT,
    hora_fim                TEXT,
    valor                   INTEGER,
    valor_tipo              TEXT CHECK (valor_tipo IN ('fixo', 'a_combinar', 'faixa')),
    forma_pagamento         TEXT,
    status                  TEXT NOT NULL DEFAULT 'aberta'
                            CHECK (status IN ('aberta', 'anunciada', 'reservada', 'aguardando_confirmacao',
                                              'pendente_confirmacao', 'confirmada', 'realizada', 'cancelada', 'fechada')),
    cliente_id              UUID REFERENCES clientes (id),
    urgente                 BOOLEAN NOT NULL DEFAULT FALSE,
    origem                  TEXT NOT NULL DEFAULT 'manual' CHECK (origem IN ('manual', 'grupo_whatsapp', 'canario')),
    vaga_grupo_id           UUID REFERENCES vagas_grupo (id),
    hash_dedup              TEXT,
    contato_nome            TEXT,
    contato_whatsapp        TEXT,
    fechada_em              TIMESTAMPTZ,
    pendente_confirmacao_em TIMESTAMPTZ,
    realizada_em            TIMESTAMPTZ,
    realizada_por           TEXT,
    cancelada_em            TIMESTAMPTZ,
    cancelada_por           TEXT,
    deleted_at              TIMESTAMPTZ,
    created_at              TIMESTAMPTZ NOT NULL,
    updated_at              TIMESTAMPTZ NOT NULL
);
-- A vaga of a group becomes a vacancy once, whoever tries again.
CREATE UNIQUE INDEX vagas_once ON vagas (vaga_grupo_id) WHERE vaga_grupo_id IS NOT NULL;
CREATE INDEX vagas_open ON vagas (status, data) WHERE deleted_at IS NULL;
CREATE INDEX vagas_open_by_key ON vagas (hash_dedup) WHERE deleted_at IS NULL AND status IN ('aberta', 'anunciada');
CREATE INDEX vagas_of_hospital ON vagas (hospital_id, data);
CREATE INDEX vagas_of_especialidade ON vagas (especialidade_id, data);

-- The queue of the pipeline (app/contexts/grupos/fila.py says which column means what): one row for a message, then one for each
-- of its vagas. estagio is the state; com_erro puts what never failed first.
CREATE TABLE fila_processamento_grupos (
    id             UUID PRIMARY KEY,
    mensagem_id    UUID NOT NULL REFERENCES mensagens_grupo (id),
    vaga_grupo_id  UUID REFERENCES vagas_grupo (id),
    estagio        VARCHAR(50) NOT NULL DEFAULT 'pendente'
                   CHECK (estagio IN ('pendente', 'heuristica', 'classificacao', 'extracao', 'normalizacao', 'deduplicacao',
                                      'importacao', 'finalizado', 'erro', 'descartado', 'cancelado')),
    chave          TEXT NOT NULL,
    tentativas     INTEGER NOT NULL DEFAULT 0,
    max_tentativas INTEGER NOT NULL DEFAULT 3,
    com_erro       INTEGER GENERATED ALWAYS AS (CASE WHEN tentativas > 0 THEN 1 ELSE 0 END) STORED,
    quedas         INTEGER NOT NULL DEFAULT 0,
    ultimo_erro    TEXT CHECK (length(ultimo_erro) <= 500),
    ultimo_estagio TEXT,
    proximo_retry  TIMESTAMPTZ NOT NULL,
    owner          TEXT,
    lease_until    TIMESTAMPTZ,
    fence          BIGINT NOT NULL DEFAULT 0,
    created_at     TIMESTAMPTZ NOT NULL,
    updated_at     TIMESTAMPTZ,
    finished_at    TIMESTAMPTZ
);
CREATE UNIQUE INDEX uq_fila_mensagem ON fila_processamento_grupos (mensagem_id) WHERE vaga_grupo_id IS NULL;
CREATE UNIQUE INDEX fila_processamento_grupos_once ON fila_processamento_grupos (chave);
CREATE INDEX fila_processamento_grupos_ready ON fila_processamento_grupos (estagio, com_erro, proximo_retry, id)
    WHERE estagio IN ('pendente', 'classificacao', 'extracao', 'normalizacao', 'deduplicacao', 'importacao')
    AND lease_until IS NULL;
CREATE INDEX fila_processamento_grupos_leased ON fila_processamento_grupos (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX idx_fila_estagio ON fila_processamento_grupos (estagio, updated_at);
CREATE INDEX idx_fila_proximo_retry ON fila_processamento_grupos (proximo_retry);
CREATE INDEX fila_processamento_grupos_dead ON fila_processamento_grupos (ultimo_estagio, finished_at) WHERE estagio = 'erro';
CREATE INDEX fila_processamento_grupos_of_vaga ON fila_processamento_grupos (vaga_grupo_id) WHERE vaga_grupo_id IS NOT NULL;
CREATE INDEX fila_processamento_grupos_of_message ON fila_processamento_grupos (mensagem_id);

-- The queue by an older name and in older words.
CREATE VIEW grupo_pipeline_fila AS
SELECT fila.id, mensagem.grupo_id, fila.mensagem_id, fila.vaga_grupo_id, fila.estagio,
       CASE WHEN fila.estagio IN ('finalizado', 'erro', 'descartado', 'cancelado') THEN fila.estagio
            WHEN fila.lease_until IS NOT NULL THEN 'processando' ELSE 'pendente' END AS status,
       fila.tentativas, fila.ultimo_erro AS erro, fila.proximo_retry, fila.created_at, fila.updated_at
FROM fila_processamento_grupos AS fila JOIN mensagens_grupo AS mensagem ON mensagem.id = fila.mensagem_id;

CREATE TABLE metricas_grupos_diarias (
    data                         DATE NOT NULL,
    grupo_id                     UUID NOT NULL REFERENCES grupos_whatsapp (id),
    mensagens_total              INTEGER NOT NULL DEFAULT 0,
    mensagens_processadas        INTEGER NOT NULL DEFAULT 0,
    mensagens_descartadas        INTEGER NOT NULL DEFAULT 0,
    vagas_extraidas              INTEGER NOT NULL DEFAULT 0,
    vagas_importadas             INTEGER NOT NULL DEFAULT 0,
    vagas_revisao                INTEGER NOT NULL DEFAULT 0,
    vagas_descartadas            INTEGER NOT NULL DEFAULT 0,
    vagas_duplicadas             INTEGER NOT NULL DEFAULT 0,
    tempo_medio_processamento_ms DOUBLE PRECISION,
    confianca_media_extracao     DOUBLE PRECISION,
    confianca_media_match        DOUBLE PRECISION,
    tokens_input                 BIGINT NOT NULL DEFAULT 0,
    tokens_output                BIGINT NOT NULL DEFAULT 0,
    custo_estimado_usd           NUMERIC(10, 4) NOT NULL DEFAULT 0,
    PRIMARY KEY (data, grupo_id)
);

CREATE TABLE metricas_pipeline_diarias (
    data                  DATE PRIMARY KEY,
    grupos_ativos         INTEGER NOT NULL DEFAULT 0,
    mensagens_total       INTEGER NOT NULL DEFAULT 0,
    mensagens_processadas INTEGER NOT NULL DEFAULT 0,
    heuristica_passou     INTEGER NOT NULL DEFAULT 0,
    llm_classificou       INTEGER NOT NULL DEFAULT 0,
    extracao_sucesso      INTEGER NOT NULL DEFAULT 0,
    normalizacao_sucesso  INTEGER NOT NULL DEFAULT 0,
    vagas_importadas      INTEGER NOT NULL DEFAULT 0,
    vagas_revisao         INTEGER NOT NULL DEFAULT 0,
    vagas_duplicadas      INTEGER NOT NULL DEFAULT 0,
    p50_tempo_ms          DOUBLE PRECISION,
    p95_tempo_ms          DOUBLE PRECISION,
    p99_tempo_ms          DOUBLE PRECISION,
    custo_total_usd       NUMERIC(10, 4) NOT NULL DEFAULT 0,
    erros_total           INTEGER NOT NULL DEFAULT 0,
    erros_por_estagio     JSONB NOT NULL DEFAULT '{}'
);

-- on postgres
-- What operators write to it: a waiting row is tried at once. Nobody takes from a worker what it has.
CREATE FUNCTION grupo_pipeline_fila_write() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE fila_processamento_grupos
    SET tentativas = least(NEW.tentativas, max_tentativas), ultimo_erro = left(NEW.erro, 500), proximo_retry = now(), updated_at = now()
    WHERE id = OLD.id AND lease_until IS NULL AND NEW.status = 'pendente' AND NEW.estagio = estagio
      AND estagio NOT IN ('finalizado', 'erro', 'descartado', 'cancelado');
    RETURN NEW;
END
$$;
CREATE TRIGGER grupo_pipeline_fila_written INSTEAD OF UPDATE ON grupo_pipeline_fila
    FOR EACH ROW EXECUTE FUNCTION grupo_pipeline_fila_write();
-- on both
