-- What is said in groups: the raw material of the groups pipeline.
CREATE TABLE grupos_whatsapp (
    id                 UUID PRIMARY KEY,
    jid                TEXT NOT NULL,
    nome               TEXT,
    tipo               TEXT NOT NULL DEFAULT 'vagas',
    regiao             TEXT,
    hospital_id        UUID,
    ativo              BOOLEAN NOT NULL DEFAULT TRUE,
    monitorar_ofertas  BOOLEAN NOT NULL DEFAULT TRUE,
    total_mensagens    INTEGER NOT NULL DEFAULT 0,
    total_ofertas      INTEGER NOT NULL DEFAULT 0,
    ultima_mensagem_em TIMESTAMPTZ,
    created_at         TIMESTAMPTZ NOT NULL
);
CREATE UNIQUE INDEX grupos_whatsapp_by_jid ON grupos_whatsapp (jid);

-- telefone is a phone or nothing: the digits of a hidden address (…@lid) are nobody's number.
CREATE TABLE contatos_grupo (
    id                   UUID PRIMARY KEY,
    jid                  TEXT NOT NULL,
    telefone             TEXT,
    nome                 TEXT,
    empresa              TEXT,
    tipo                 TEXT,
    total_mensagens      INTEGER NOT NULL DEFAULT 0,
    total_vagas_postadas INTEGER NOT NULL DEFAULT 0,
    taxa_qualidade       DOUBLE PRECISION,
    created_at           TIMESTAMPTZ NOT NULL
);
CREATE UNIQUE INDEX contatos_grupo_by_jid ON contatos_grupo (jid);
CREATE INDEX contatos_grupo_by_phone ON contatos_grupo (telefone) WHERE telefone IS NOT NULL;

CREATE TABLE mensagens_grupo (
    id                      UUID PRIMARY KEY,
    grupo_id                UUID NOT NULL REFERENCES grupos_whatsapp (id),
    contato_id              UUID REFERENCES contatos_grupo (id),
    message_id              TEXT NOT NULL,
    sender_jid              TEXT,
    sender_nome             TEXT,
    texto                   TEXT NOT NULL,
    tipo_midia              TEXT,
    tem_midia               BOOLEAN NOT NULL DEFAULT FALSE,
    timestamp_msg           TIMESTAMPTZ NOT NULL,
    is_forwarded            BOOLEAN NOT NULL DEFAULT FALSE,
    instance_name           TEXT NOT NULL,
    status                  TEXT NOT NULL
                            CHECK (status IN ('pendente', 'ignorada_midia', 'ignorada_curta', 'heuristica_passou',
                                              'heuristica_rejeitou', 'classificada_oferta', 'classificada_nao_oferta',
                                              'erro_classificacao', 'extraida', 'processada', 'descartada')),
    passou_heuristica       BOOLEAN,
    score_heuristica        DOUBLE PRECISION,
    keywords_encontradas    JSONB,
    motivo_descarte         TEXT,
    eh_oferta               BOOLEAN,
    confianca_classificacao DOUBLE PRECISION,
    qtd_vagas_extraidas     INTEGER,
    processado_em           TIMESTAMPTZ,
    created_at              TIMESTAMPTZ NOT NULL
);
-- One message may come through several chips.
CREATE UNIQUE INDEX mensagens_grupo_once ON mensagens_grupo (message_id);
CREATE INDEX mensagens_grupo_waiting ON mensagens_grupo (created_at) WHERE status = 'pendente';
CREATE INDEX mensagens_grupo_of_group ON mensagens_grupo (grupo_id, timestamp_msg DESC);
CREATE INDEX mensagens_grupo_of_contact ON mensagens_grupo (contato_id) WHERE contato_id IS NOT NULL;
