-- How many looks in a row found the connection shut: one is the line's mood, two count.
ALTER TABLE chips ADD COLUMN conexao_falhas INTEGER NOT NULL DEFAULT 0;

-- Every error that a chip itself met while it sent: its trust is made of them.
CREATE TABLE chip_erros (
    id         UUID PRIMARY KEY,
    chip_id    UUID NOT NULL REFERENCES chips (id),
    motivo     TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX chip_erros_of_chip ON chip_erros (chip_id, created_at DESC);
CREATE INDEX chip_erros_by_time ON chip_erros (created_at);
CREATE INDEX chip_trust_history_by_time ON chip_trust_history (created_at);

-- When a doctor's phone is looked up next. While somebody does: when he is taken for dead. After an error: when it is tried again.
ALTER TABLE clientes ADD COLUMN telefone_validar_em TIMESTAMPTZ;
ALTER TABLE clientes ADD COLUMN telefone_tentativas INTEGER NOT NULL DEFAULT 0;
DROP INDEX clientes_to_validate;
DROP INDEX clientes_validating;
CREATE INDEX clientes_to_validate ON clientes (coalesce(telefone_validar_em, created_at))
    WHERE status_telefone IN ('pendente', 'validando', 'erro') AND deleted_at IS NULL;
