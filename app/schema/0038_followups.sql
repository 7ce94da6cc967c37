-- The history of a conversation also has the pauses of its follow-ups.
-- on sqlite
ALTER TABLE conversas_historico RENAME TO conversas_historico_anterior;
CREATE TABLE conversas_historico (
    conversa_id UUID NOT NULL REFERENCES conversations (id),
    ordem       INTEGER NOT NULL,
    acao        TEXT NOT NULL CHECK (acao IN ('escalar', 'assumir', 'devolver', 'encerrar', 'pausar', 'retomar')),
    por         TEXT NOT NULL,
    motivo      TEXT NOT NULL CHECK (length(motivo) <= 500),
    mensagens   INTEGER NOT NULL DEFAULT 0,
    em          TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (conversa_id, ordem)
);
INSERT INTO conversas_historico (conversa_id, ordem, acao, por, motivo, mensagens, em)
SELECT conversa_id, ordem, acao, por, motivo, mensagens, em FROM conversas_historico_anterior;
DROP TABLE conversas_historico_anterior;
-- on postgres
ALTER TABLE conversas_historico DROP CONSTRAINT conversas_historico_acao_check;
ALTER TABLE conversas_historico ADD CONSTRAINT conversas_historico_acao_check
    CHECK (acao IN ('escalar', 'assumir', 'devolver', 'encerrar', 'pausar', 'retomar'));
-- on both
-- Conversations that wait for a follow-up, and conversations whose follow-ups are paused after the last one.
DROP INDEX conversations_by_stage;
CREATE INDEX conversations_by_stage ON conversations (stage, ultima_mensagem_em) WHERE status IN ('active', 'paused', 'escalated');
DROP INDEX conversations_paused;
CREATE INDEX conversations_paused ON conversations (pausado_ate) WHERE stage = 'nao_respondeu';
