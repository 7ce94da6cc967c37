-- A report of one period, once: its figures are counted when it is made and do not change afterwards.
CREATE TABLE relatorios (
    id         UUID PRIMARY KEY,
    tipo       TEXT NOT NULL CHECK (tipo IN ('manha', 'almoco', 'tarde', 'fim_dia', 'semanal')),
    inicio     TIMESTAMPTZ NOT NULL,
    fim        TIMESTAMPTZ NOT NULL,
    metricas   JSONB NOT NULL,
    destaques  JSONB NOT NULL,
    por        TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    CHECK (fim > inicio)
);
CREATE UNIQUE INDEX relatorios_once ON relatorios (tipo, inicio);
CREATE INDEX relatorios_by_time ON relatorios (fim DESC);

-- The delivery of a report to one destination. enviando is written before the request; it remains if the process dies during the
-- request. incerto: the request may have arrived, so only a person sends the report again. recusado: it did not arrive.
CREATE TABLE relatorios_envios (
    relatorio_id UUID NOT NULL REFERENCES relatorios (id),
    destino      TEXT NOT NULL CHECK (destino IN ('slack', 'webhook')),
    estado       TEXT NOT NULL CHECK (estado IN ('enviando', 'enviado', 'recusado', 'incerto')),
    desde        TIMESTAMPTZ NOT NULL,
    erro         TEXT CHECK (length(erro) <= 500),
    PRIMARY KEY (relatorio_id, destino)
);
CREATE INDEX relatorios_envios_abertos ON relatorios_envios (desde) WHERE estado <> 'enviado';

-- Reports and alerts count messages of a period.
CREATE INDEX interacoes_by_time ON interacoes (created_at);
CREATE INDEX vagas_historico_by_time ON vagas_historico (em);
