-- The evaluation of a conversation, once. avaliador says who judged it; the rules leave the scores that they cannot judge empty.
-- The lists are sentences without personal data. A person may correct the score; the evaluation itself does not change.
CREATE TABLE avaliacoes_qualidade (
    id             UUID PRIMARY KEY,
    conversa_id    UUID NOT NULL REFERENCES conversations (id),
    avaliador      TEXT NOT NULL CHECK (avaliador IN ('regras', 'modelo')),
    modelo         TEXT,
    naturalidade   INTEGER CHECK (naturalidade BETWEEN 1 AND 10),
    persona        INTEGER CHECK (persona BETWEEN 1 AND 10),
    objetivo       INTEGER CHECK (objetivo BETWEEN 1 AND 10),
    satisfacao     INTEGER CHECK (satisfacao BETWEEN 1 AND 10),
    score_geral    INTEGER NOT NULL CHECK (score_geral BETWEEN 1 AND 10),
    positivos      JSONB NOT NULL,
    negativos      JSONB NOT NULL,
    sugestoes      JSONB NOT NULL,
    mensagens      INTEGER NOT NULL,
    -- Version of the guidance in the question to the model.
    prompt_versao  INTEGER,
    nota_corrigida INTEGER CHECK (nota_corrigida BETWEEN 1 AND 10),
    correcao       TEXT CHECK (length(correcao) <= 500),
    corrigida_por  TEXT,
    corrigida_em   TIMESTAMPTZ,
    created_at     TIMESTAMPTZ NOT NULL,
    CHECK ((avaliador = 'modelo') = (modelo IS NOT NULL)),
    CHECK ((nota_corrigida IS NULL) = (corrigida_em IS NULL))
);
CREATE UNIQUE INDEX avaliacoes_qualidade_once ON avaliacoes_qualidade (conversa_id);
CREATE INDEX avaliacoes_qualidade_by_time ON avaliacoes_qualidade (created_at DESC);

-- Answers of the model about a conversation that could not be read. After the third, the rules evaluate the conversation.
CREATE TABLE avaliacoes_ilegiveis (
    conversa_id UUID PRIMARY KEY REFERENCES conversations (id),
    vezes       INTEGER NOT NULL CHECK (vezes >= 1),
    em          TIMESTAMPTZ NOT NULL
);

-- Guidance for the model, from evaluations and corrections. A new version ends the one before it; a version is never empty.
CREATE TABLE prompts (
    id           UUID PRIMARY KEY,
    nome         TEXT NOT NULL,
    versao       INTEGER NOT NULL CHECK (versao >= 1),
    conteudo     TEXT NOT NULL CHECK (length(conteudo) >= 1),
    -- Counts of the evaluations and corrections that it condenses.
    base         JSONB NOT NULL,
    por          TEXT NOT NULL,
    created_at   TIMESTAMPTZ NOT NULL,
    encerrado_em TIMESTAMPTZ
);
CREATE UNIQUE INDEX prompts_versions ON prompts (nome, versao);
CREATE UNIQUE INDEX prompts_active ON prompts (nome) WHERE encerrado_em IS NULL;
