-- Files of queued Telegram messages. They are in the database because the worker may run on another machine than the api. A file is deleted
-- when its message is sent.
CREATE TABLE telegram_arquivos (
    mensagem_id UUID PRIMARY KEY REFERENCES fila_mensagens (id) ON DELETE CASCADE,
    cliente_id  UUID NOT NULL REFERENCES clientes (id),
    nome        TEXT NOT NULL,
    mime        TEXT NOT NULL,
    conteudo    BYTEA NOT NULL,
    created_at  TIMESTAMPTZ NOT NULL
);
CREATE INDEX telegram_arquivos_of_doctor ON telegram_arquivos (cliente_id);

-- The queued message of a forward.
ALTER TABLE telegram_acoes ADD COLUMN mensagem_id UUID;

-- A session belongs to an account. A session without an account is deleted.
CREATE TABLE telegram_sessoes_com_conta (
    conta_id   TEXT PRIMARY KEY REFERENCES telegram_contas (id),
    cifrada    TEXT NOT NULL,
    dono       TEXT,
    dono_ate   TIMESTAMPTZ,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    CHECK ((dono IS NULL) = (dono_ate IS NULL))
);
INSERT INTO telegram_sessoes_com_conta (conta_id, cifrada, dono, dono_ate, created_at, updated_at)
SELECT conta_id, cifrada, dono, dono_ate, created_at, updated_at FROM telegram_sessoes
WHERE conta_id IN (SELECT id FROM telegram_contas);
DROP TABLE telegram_sessoes;
ALTER TABLE telegram_sessoes_com_conta RENAME TO telegram_sessoes;
