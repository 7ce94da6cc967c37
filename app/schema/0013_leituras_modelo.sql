-- What a model was asked about a message, once for a text and the day it was said on. resposta: NULL while somebody asks.
CREATE TABLE leituras_modelo (
    chave         TEXT PRIMARY KEY,
    modelo        TEXT NOT NULL,
    pedida_em     TIMESTAMPTZ NOT NULL,
    respondida_em TIMESTAMPTZ,
    resposta      JSONB,
    tokens_input  INTEGER NOT NULL DEFAULT 0,
    tokens_output INTEGER NOT NULL DEFAULT 0,
    custo_usd     DOUBLE PRECISION NOT NULL DEFAULT 0
);
CREATE INDEX leituras_modelo_by_time ON leituras_modelo (respondida_em) WHERE respondida_em IS NOT NULL;
