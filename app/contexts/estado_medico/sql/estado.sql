-- write contacted: move a doctor who receives the first message to the stage prospecting
UPDATE doctor_state SET lifecycle_stage = 'prospecting', updated_at = :now
WHERE cliente_id = :cliente_id AND lifecycle_stage = 'novo';

-- write wrote: raise the temperature by an inbound message; the doctor takes part in the conversation
UPDATE doctor_state
SET temperature = CASE WHEN temperature + CAST(:sobe AS DOUBLE PRECISION) > 1 THEN 1 ELSE temperature + CAST(:sobe AS DOUBLE PRECISION) END,
    temperature_trend = CASE WHEN CAST(:sobe AS DOUBLE PRECISION) = 0 THEN temperature_trend WHEN temperature >= 1 THEN 'stable' ELSE 'warming' END,
    temperature_band = CASE WHEN temperature + CAST(:sobe AS DOUBLE PRECISION) < 0.33 THEN 'cold'
                            WHEN temperature + CAST(:sobe AS DOUBLE PRECISION) < 0.66 THEN 'warm' ELSE 'hot' END,
    lifecycle_stage = CASE WHEN lifecycle_stage IN ('novo', 'prospecting', 'churned') THEN 'engaged' ELSE lifecycle_stage END,
    updated_at = :now
WHERE cliente_id = :cliente_id;

-- write object: record the objection of an inbound message
UPDATE doctor_state
SET active_objection = 'objecao', objection_severity = :gravidade, objection_detected_at = :em, objection_resolved_at = NULL, updated_at = :now
WHERE cliente_id = :cliente_id;

-- write resolve: end an open objection, because the doctor accepted or confirmed
UPDATE doctor_state SET active_objection = NULL, objection_resolved_at = :em, updated_at = :now
WHERE cliente_id = :cliente_id AND active_objection IS NOT NULL;

-- write rest: begin a rest, or extend the present one; an opt-out stays an opt-out
UPDATE doctor_state
SET cooling_off_until = CASE WHEN permission_state = 'cooling_off' AND (cooling_off_until IS NULL OR cooling_off_until > :ate)
                             THEN cooling_off_until ELSE :ate END,
    permission_state = 'cooling_off', updated_at = :now
WHERE cliente_id = :cliente_id AND permission_state <> 'opted_out';

-- read warm: doctors whose temperature falls now, one page at a time
SELECT cliente_id, last_decay_at, last_inbound_at FROM doctor_state
WHERE permission_state <> 'opted_out' AND temperature > 0 AND (last_decay_at IS NOT NULL OR last_inbound_at IS NOT NULL)
  AND (last_decay_at IS NULL OR last_decay_at <= :antes) AND (last_inbound_at IS NULL OR last_inbound_at <= :antes)
  AND cliente_id > :depois
ORDER BY cliente_id LIMIT :limite;

-- write cool: lower a temperature, unless the doctor wrote or another run lowered it meanwhile
UPDATE doctor_state
SET temperature = CASE WHEN temperature > CAST(:quanto AS DOUBLE PRECISION) THEN temperature - CAST(:quanto AS DOUBLE PRECISION) ELSE 0 END,
    temperature_trend = 'cooling',
    temperature_band = CASE WHEN temperature - CAST(:quanto AS DOUBLE PRECISION) < 0.33 THEN 'cold'
                            WHEN temperature - CAST(:quanto AS DOUBLE PRECISION) < 0.66 THEN 'warm' ELSE 'hot' END,
    last_decay_at = :ate, updated_at = :now
WHERE cliente_id = :cliente_id AND permission_state <> 'opted_out' AND temperature > 0
  AND (last_decay_at IS NULL OR last_decay_at < :ate) AND (last_inbound_at IS NULL OR last_inbound_at <= :desde);

-- write end_rests: end rests whose time has passed
UPDATE doctor_state
SET permission_state = CASE WHEN last_inbound_at IS NULL THEN 'initial' ELSE 'active' END, cooling_off_until = NULL, updated_at = :now
WHERE permission_state = 'cooling_off' AND cooling_off_until <= :now
  AND cliente_id IN (SELECT resting.cliente_id FROM doctor_state AS resting
                     WHERE resting.permission_state = 'cooling_off' AND resting.cooling_off_until <= :now
                     ORDER BY resting.cooling_off_until LIMIT :limite)
RETURNING cliente_id;

-- write lose: move doctors whose last inbound message is old to the stage churned
UPDATE doctor_state SET lifecycle_stage = 'churned', updated_at = :now
WHERE permission_state <> 'opted_out' AND lifecycle_stage <> 'churned' AND last_inbound_at < :antes
  AND cliente_id IN (SELECT silent.cliente_id FROM doctor_state AS silent
                     WHERE silent.permission_state <> 'opted_out' AND silent.lifecycle_stage <> 'churned' AND silent.last_inbound_at < :antes
                     ORDER BY silent.last_inbound_at LIMIT :limite)
RETURNING cliente_id;

-- read recorded: the last messages of each doctor in the state and in the record of messages, one page at a time
SELECT doctor.id AS cliente_id, doctor.opt_out OR doctor.opted_out AS "parou [BOOLEAN]", state.last_inbound_at, state.last_outbound_at,
       (SELECT max(came.created_at) FROM interacoes AS came WHERE came.cliente_id = doctor.id AND came.tipo = 'entrada')
           AS "entrada [TIMESTAMPTZ]",
       (SELECT max(went.created_at) FROM interacoes AS went WHERE went.cliente_id = doctor.id AND went.tipo = 'saida')
           AS "saida [TIMESTAMPTZ]"
FROM clientes AS doctor LEFT JOIN doctor_state AS state ON state.cliente_id = doctor.id
WHERE doctor.deleted_at IS NULL AND doctor.id > :depois
ORDER BY doctor.id LIMIT :limite;

-- write repair: set the last messages of a doctor from the record of messages; neither instant moves backwards
INSERT INTO doctor_state (cliente_id, permission_state, lifecycle_stage, last_inbound_at, last_outbound_at, updated_at)
VALUES (:cliente_id, :permissao, :ciclo, :entrada, :saida, :now)
ON CONFLICT (cliente_id) DO UPDATE
SET last_inbound_at = CASE WHEN doctor_state.last_inbound_at IS NULL OR excluded.last_inbound_at > doctor_state.last_inbound_at
                           THEN excluded.last_inbound_at ELSE doctor_state.last_inbound_at END,
    last_outbound_at = CASE WHEN doctor_state.last_outbound_at IS NULL OR excluded.last_outbound_at > doctor_state.last_outbound_at
                            THEN excluded.last_outbound_at ELSE doctor_state.last_outbound_at END,
    permission_state = CASE WHEN doctor_state.permission_state IN ('none', 'initial') THEN excluded.permission_state
                            ELSE doctor_state.permission_state END,
    lifecycle_stage = CASE WHEN doctor_state.lifecycle_stage IN ('novo', 'prospecting') THEN excluded.lifecycle_stage
                           ELSE doctor_state.lifecycle_stage END,
    updated_at = excluded.updated_at;

-- write ensure: give a doctor without a state the initial state; an existing one is locked until the transaction ends
INSERT INTO doctor_state (cliente_id, permission_state, updated_at)
SELECT id, CASE WHEN opt_out OR opted_out THEN 'opted_out' ELSE 'none' END, :now FROM clientes WHERE id = :cliente_id AND deleted_at IS NULL
ON CONFLICT (cliente_id) DO UPDATE SET updated_at = doctor_state.updated_at;

-- read one: the state of a doctor, with the messages on our initiative in the last seven days
SELECT doctor.id AS cliente_id, coalesce(state.permission_state, 'none') AS permission_state, state.cooling_off_until,
       coalesce(state.temperature, 0.5) AS temperature, coalesce(state.temperature_trend, 'stable') AS temperature_trend,
       coalesce(state.temperature_band, 'warm') AS temperature_band, coalesce(state.lifecycle_stage, 'novo') AS lifecycle_stage,
       state.last_inbound_at, state.last_outbound_at, state.next_allowed_at, state.active_objection, state.objection_severity,
       state.objection_detected_at, state.last_decay_at,
       (SELECT count(*) FROM fila_mensagens AS sent WHERE sent.cliente_id = doctor.id AND sent.status = 'enviada'
        AND sent.enviada_em > :week_ago AND sent.tipo NOT IN ('resposta', 'recebimento', 'retomada')) AS contatos_7d
FROM clientes AS doctor LEFT JOIN doctor_state AS state ON state.cliente_id = doctor.id
WHERE doctor.id = :cliente_id AND doctor.deleted_at IS NULL;

-- read listed: states of doctors, last changed first
SELECT state.cliente_id, state.permission_state, state.cooling_off_until, state.temperature, state.temperature_trend, state.temperature_band,
       state.lifecycle_stage, state.last_inbound_at, state.last_outbound_at, state.next_allowed_at, state.active_objection,
       state.objection_severity, state.objection_detected_at, state.last_decay_at,
       (SELECT count(*) FROM fila_mensagens AS sent WHERE sent.cliente_id = state.cliente_id AND sent.status = 'enviada'
        AND sent.enviada_em > :week_ago AND sent.tipo NOT IN ('resposta', 'recebimento', 'retomada')) AS contatos_7d
FROM doctor_state AS state JOIN clientes AS doctor ON doctor.id = state.cliente_id AND doctor.deleted_at IS NULL
WHERE (CAST(:permissao AS text) IS NULL OR state.permission_state = :permissao)
  AND (CAST(:ciclo AS text) IS NULL OR state.lifecycle_stage = :ciclo)
ORDER BY state.updated_at DESC, state.cliente_id LIMIT :limite OFFSET :pular;

-- write correct: store the fields that an operator corrects
UPDATE doctor_state
SET temperature = :temperature, temperature_trend = :temperature_trend, temperature_band = :temperature_band, last_decay_at = :last_decay_at,
    lifecycle_stage = :lifecycle_stage, permission_state = :permission_state, cooling_off_until = :cooling_off_until,
    next_allowed_at = :next_allowed_at, updated_at = :now
WHERE cliente_id = :cliente_id;
