-- Accounts of Telegram that Julia writes and reads with. The session of an account is stored elsewhere, encrypted.
CREATE TABLE telegram_contas (
    -- A UUID as text, because the queues group by it.
    id             TEXT PRIMARY KEY,
    nome           TEXT NOT NULL,
    telefone       TEXT,
    usuario_id     BIGINT,
    -- revogada: a person has to log in again; banida: Telegram closed the account
    estado         TEXT NOT NULL DEFAULT 'ativa' CHECK (estado IN ('ativa', 'pausada', 'revogada', 'banida', 'removida')),
    -- The position of the last stored update.
    marca          TEXT,
    conectada      BOOLEAN NOT NULL DEFAULT FALSE,
    conectada_em   TIMESTAMPTZ,
    -- The last answer of the server, and the last update from it.
    respondeu_em   TIMESTAMPTZ,
    atualizada_em  TIMESTAMPTZ,
    erro           TEXT CHECK (length(erro) <= 500),
    reconexoes     INTEGER NOT NULL DEFAULT 0,
    created_at     TIMESTAMPTZ NOT NULL,
    updated_at     TIMESTAMPTZ NOT NULL
);
CREATE UNIQUE INDEX telegram_contas_nome ON telegram_contas (nome);

-- How long an account may not call a method.
CREATE TABLE telegram_esperas (
    conta_id   TEXT NOT NULL REFERENCES telegram_contas (id),
    metodo     TEXT NOT NULL,
    ate        TIMESTAMPTZ NOT NULL,
    motivo     TEXT NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (conta_id, metodo)
);

-- People and chats that an account knows. The access number is valid for this account only. contatos_lid links a
-- person (<id>@telegram) to the telephone number and so to the row in clientes.
CREATE TABLE telegram_entidades (
    conta_id  TEXT NOT NULL REFERENCES telegram_contas (id),
    chave     TEXT NOT NULL,
    -- The address of a person, <id>@telegram.
    quem      TEXT,
    acesso    BIGINT,
    nome      TEXT,
    username  TEXT,
    telefone  TEXT,
    is_bot    BOOLEAN NOT NULL DEFAULT FALSE,
    visto_em  TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (conta_id, chave)
);
CREATE INDEX telegram_entidades_username ON telegram_entidades (conta_id, username) WHERE username IS NOT NULL;
CREATE INDEX telegram_entidades_telefone ON telegram_entidades (conta_id, telefone) WHERE telefone IS NOT NULL;
CREATE INDEX telegram_entidades_quem ON telegram_entidades (quem) WHERE quem IS NOT NULL;
CREATE INDEX telegram_entidades_visto ON telegram_entidades (visto_em);

-- Messages to people: one table for both channels, so that every rule holds for a person on both. fila is the queue,
-- conta_id the account of Telegram.
ALTER TABLE fila_mensagens ADD COLUMN fila TEXT NOT NULL DEFAULT 'fila_mensagens' CHECK (fila IN ('fila_mensagens', 'telegram_saida'));
ALTER TABLE fila_mensagens ADD COLUMN conta_id TEXT REFERENCES telegram_contas (id);
DROP INDEX fila_mensagens_ready;
CREATE INDEX fila_mensagens_ready ON fila_mensagens (fila, prioridade, agendar_para, id)
    WHERE status = 'pendente' AND lease_until IS NULL AND envio_estado IS NULL;
CREATE INDEX telegram_saida_ready ON fila_mensagens (fila, conta_id, prioridade, agendar_para, id)
    WHERE status = 'pendente' AND lease_until IS NULL AND envio_estado IS NULL;
CREATE INDEX fila_mensagens_of_account ON fila_mensagens (conta_id, cliente_id, created_at) WHERE conta_id IS NOT NULL;
CREATE VIEW telegram_saida AS
SELECT id, conta_id, cliente_id, tipo, status, envio_estado, agendar_para, tentativas, provider_message_id, enviada_em, outcome,
       outcome_reason_code, erro, created_at, finalizada_em
FROM fila_mensagens WHERE fila = 'telegram_saida';

-- Messages that Telegram delivered, each once: a queue. Messages of the history are stored as processada.
CREATE TABLE telegram_entrada (
    id           UUID PRIMARY KEY,
    chave        TEXT NOT NULL,
    conta_id     TEXT NOT NULL REFERENCES telegram_contas (id),
    chat         TEXT NOT NULL,
    chat_nome    TEXT,
    mensagem     BIGINT NOT NULL,
    propria      BOOLEAN NOT NULL DEFAULT FALSE,
    -- The address of the author, or of the person in whose chat the message is.
    quem         TEXT,
    autor_nome   TEXT,
    autor_telefone TEXT,
    texto        TEXT NOT NULL,
    midia        JSONB,
    resposta_a   BIGINT,
    encaminhada  BOOLEAN NOT NULL DEFAULT FALSE,
    em           TIMESTAMPTZ NOT NULL,
    editada_em   TIMESTAMPTZ,
    apagada_em   TIMESTAMPTZ,
    origem       TEXT NOT NULL DEFAULT 'atualizacao' CHECK (origem IN ('atualizacao', 'historico')),
    status       TEXT NOT NULL DEFAULT 'pendente'
                 CHECK (status IN ('pendente', 'processando', 'processada', 'erro', 'cancelada')),
    available_at TIMESTAMPTZ NOT NULL,
    tentativas   INTEGER NOT NULL DEFAULT 0,
    quedas       INTEGER NOT NULL DEFAULT 0,
    erro         TEXT CHECK (length(erro) <= 500),
    owner        TEXT,
    lease_until  TIMESTAMPTZ,
    fence        BIGINT NOT NULL DEFAULT 0,
    created_at   TIMESTAMPTZ NOT NULL,
    finished_at  TIMESTAMPTZ
);
CREATE UNIQUE INDEX telegram_entrada_once ON telegram_entrada (chave);
CREATE INDEX telegram_entrada_ready ON telegram_entrada (chat, available_at, id) WHERE status = 'pendente' AND lease_until IS NULL;
CREATE INDEX telegram_entrada_leased ON telegram_entrada (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX telegram_entrada_in_status ON telegram_entrada (status, created_at DESC);
CREATE INDEX telegram_entrada_over ON telegram_entrada (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX telegram_entrada_of_account ON telegram_entrada (conta_id, chat, mensagem);

-- Back-fills of the history of a chat: a queue. cursor is the last stored message, so a stopped back-fill continues.
CREATE TABLE telegram_historico (
    id           UUID PRIMARY KEY,
    chave        TEXT,
    conta_id     TEXT NOT NULL REFERENCES telegram_contas (id),
    destino      TEXT NOT NULL,
    cursor       BIGINT NOT NULL DEFAULT 0,
    lidas        INTEGER NOT NULL DEFAULT 0,
    novas        INTEGER NOT NULL DEFAULT 0,
    maximo       INTEGER NOT NULL,
    status       TEXT NOT NULL DEFAULT 'pendente'
                 CHECK (status IN ('pendente', 'processando', 'concluido', 'erro', 'cancelado')),
    available_at TIMESTAMPTZ NOT NULL,
    tentativas   INTEGER NOT NULL DEFAULT 0,
    quedas       INTEGER NOT NULL DEFAULT 0,
    erro         TEXT CHECK (length(erro) <= 500),
    cancelamento_pedido BOOLEAN NOT NULL DEFAULT FALSE,
    owner        TEXT,
    lease_until  TIMESTAMPTZ,
    fence        BIGINT NOT NULL DEFAULT 0,
    created_at   TIMESTAMPTZ NOT NULL,
    finished_at  TIMESTAMPTZ
);
CREATE UNIQUE INDEX telegram_historico_alive ON telegram_historico (chave) WHERE status IN ('pendente', 'processando');
CREATE INDEX telegram_historico_ready ON telegram_historico (conta_id, available_at, id)
    WHERE status = 'pendente' AND lease_until IS NULL;
CREATE INDEX telegram_historico_leased ON telegram_historico (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX telegram_historico_over ON telegram_historico (finished_at) WHERE finished_at IS NOT NULL;

-- Changes of messages that exist at Telegram: a queue.
CREATE TABLE telegram_acoes (
    id           UUID PRIMARY KEY,
    chave        TEXT,
    conta_id     TEXT NOT NULL REFERENCES telegram_contas (id),
    acao         TEXT NOT NULL CHECK (acao IN ('editar', 'apagar', 'ler', 'encaminhar')),
    chat         TEXT NOT NULL,
    mensagem     BIGINT NOT NULL,
    texto        TEXT,
    destino      TEXT,
    pedida_por   TEXT NOT NULL,
    status       TEXT NOT NULL DEFAULT 'pendente'
                 CHECK (status IN ('pendente', 'processando', 'feita', 'erro', 'cancelada')),
    available_at TIMESTAMPTZ NOT NULL,
    tentativas   INTEGER NOT NULL DEFAULT 0,
    quedas       INTEGER NOT NULL DEFAULT 0,
    erro         TEXT CHECK (length(erro) <= 500),
    owner        TEXT,
    lease_until  TIMESTAMPTZ,
    fence        BIGINT NOT NULL DEFAULT 0,
    created_at   TIMESTAMPTZ NOT NULL,
    finished_at  TIMESTAMPTZ
);
CREATE UNIQUE INDEX telegram_acoes_alive ON telegram_acoes (chave) WHERE status IN ('pendente', 'processando');
CREATE INDEX telegram_acoes_ready ON telegram_acoes (conta_id, available_at, id) WHERE status = 'pendente' AND lease_until IS NULL;
CREATE INDEX telegram_acoes_leased ON telegram_acoes (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX telegram_acoes_over ON telegram_acoes (finished_at) WHERE finished_at IS NOT NULL;
