-- Doctors, and how each may be spoken to. The "cliente" is the doctor.
CREATE TABLE clientes (
    id                   UUID PRIMARY KEY,
    telefone             TEXT NOT NULL CHECK (length(telefone) BETWEEN 8 AND 15),
    -- The same line with or without the ninth digit: WhatsApp registers older Brazilian mobiles without it.
    telefone_chave       TEXT GENERATED ALWAYS AS (
        CASE WHEN length(telefone) = 13 AND substr(telefone, 1, 2) = '55' AND substr(telefone, 5, 1) = '9'
                  AND substr(telefone, 6, 1) IN ('6', '7', '8', '9')
             THEN substr(telefone, 1, 4) || substr(telefone, 6) ELSE telefone END) STORED,
    primeiro_nome        TEXT,
    sobrenome            TEXT,
    cpf                  TEXT,
    crm                  TEXT,
    especialidade        TEXT,
    cidade               TEXT,
    estado               TEXT CHECK (length(estado) = 2),
    status               TEXT NOT NULL DEFAULT 'ativo',
    -- Two flags by history; both are set together, and either one counts.
    opt_out              BOOLEAN NOT NULL DEFAULT FALSE,
    opted_out            BOOLEAN NOT NULL DEFAULT FALSE,
    opted_out_at         TIMESTAMPTZ,
    stage_jornada        TEXT,
    pressure_score_atual INTEGER NOT NULL DEFAULT 0,
    qualification_score  DOUBLE PRECISION NOT NULL DEFAULT 0,
    total_interacoes     INTEGER NOT NULL DEFAULT 0,
    ultima_mensagem_data TIMESTAMPTZ,
    status_telefone      TEXT NOT NULL DEFAULT 'pendente'
                         CHECK (status_telefone IN ('pendente', 'validando', 'validado', 'invalido', 'erro')),
    telefone_validado_em TIMESTAMPTZ,
    grupo_piloto         BOOLEAN NOT NULL DEFAULT FALSE,
    created_at           TIMESTAMPTZ NOT NULL,
    deleted_at           TIMESTAMPTZ
);
CREATE UNIQUE INDEX clientes_by_phone ON clientes (telefone_chave) WHERE deleted_at IS NULL;
CREATE INDEX clientes_to_validate ON clientes (created_at) WHERE status_telefone = 'pendente' AND deleted_at IS NULL;
CREATE INDEX clientes_validating ON clientes (telefone_validado_em) WHERE status_telefone = 'validando';
CREATE INDEX clientes_audience ON clientes (especialidade, estado, id) WHERE deleted_at IS NULL;

CREATE TABLE doctor_state (
    cliente_id             UUID PRIMARY KEY REFERENCES clientes (id),
    permission_state       TEXT NOT NULL DEFAULT 'none'
                           CHECK (permission_state IN ('none', 'initial', 'active', 'cooling_off', 'opted_out')),
    cooling_off_until      TIMESTAMPTZ,
    temperature            DOUBLE PRECISION NOT NULL DEFAULT 0.5 CHECK (temperature BETWEEN 0 AND 1),
    temperature_trend      TEXT NOT NULL DEFAULT 'stable' CHECK (temperature_trend IN ('warming', 'cooling', 'stable')),
    temperature_band       TEXT NOT NULL DEFAULT 'warm' CHECK (temperature_band IN ('cold', 'warm', 'hot')),
    risk_tolerance         TEXT,
    last_inbound_at        TIMESTAMPTZ,
    last_outbound_at       TIMESTAMPTZ,
    next_allowed_at        TIMESTAMPTZ,
    contact_count_7d       INTEGER NOT NULL DEFAULT 0,
    active_objection       TEXT,
    objection_severity     TEXT CHECK (objection_severity IN ('low', 'medium', 'high', 'grave')),
    objection_detected_at  TIMESTAMPTZ,
    objection_resolved_at  TIMESTAMPTZ,
    pending_action         TEXT,
    current_intent         TEXT,
    lifecycle_stage        TEXT NOT NULL DEFAULT 'novo'
                           CHECK (lifecycle_stage IN ('novo', 'prospecting', 'engaged', 'qualified', 'active', 'churned')),
    last_decay_at          TIMESTAMPTZ,
    last_touch_at          TIMESTAMPTZ,
    last_touch_method      TEXT,
    last_touch_campaign_id BIGINT,
    updated_at             TIMESTAMPTZ NOT NULL
);
CREATE INDEX doctor_state_cooling ON doctor_state (cooling_off_until) WHERE permission_state = 'cooling_off';
CREATE INDEX doctor_state_by_outbound ON doctor_state (last_outbound_at);

-- Whoever writes to us and is no doctor of ours: recruiters, wrong numbers. Their "stop" counts as well.
CREATE TABLE external_contacts (
    telefone         TEXT PRIMARY KEY,
    nome             TEXT,
    permission_state TEXT NOT NULL DEFAULT 'active' CHECK (permission_state IN ('active', 'opted_out')),
    created_at       TIMESTAMPTZ NOT NULL,
    updated_at       TIMESTAMPTZ NOT NULL
);

-- What happened, for people and reports. dedupe_key: a fact that is told twice stands here once.
CREATE TABLE business_events (
    id                 UUID PRIMARY KEY,
    ts                 TIMESTAMPTZ NOT NULL,
    event_type         TEXT NOT NULL,
    source             TEXT NOT NULL
                       CHECK (source IN ('pipeline', 'backend', 'db', 'heuristic', 'ops', 'system', 'slack')),
    cliente_id         UUID,
    vaga_id            UUID,
    hospital_id        UUID,
    conversation_id    UUID,
    policy_decision_id UUID,
    event_props        JSONB NOT NULL,
    dedupe_key         TEXT
);
CREATE UNIQUE INDEX business_events_once ON business_events (dedupe_key) WHERE dedupe_key IS NOT NULL;
CREATE INDEX business_events_by_time ON business_events (ts DESC);
CREATE INDEX business_events_of_doctor ON business_events (cliente_id, ts DESC) WHERE cliente_id IS NOT NULL;
CREATE INDEX business_events_of_type ON business_events (event_type, ts DESC);
