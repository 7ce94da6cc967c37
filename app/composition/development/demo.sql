-- read anybody: whether any doctor or campaign exists
SELECT 1 AS one FROM clientes UNION ALL SELECT 1 AS one FROM campanhas LIMIT 1;

-- read begun: whether the demonstration's chip exists
SELECT 1 AS one FROM chips WHERE id = :id;

-- write doctor: insert a fictitious doctor; an existing row is unchanged
INSERT INTO clientes (id, telefone, primeiro_nome, sobrenome, crm, especialidade, cidade, estado, status_telefone, created_at)
VALUES (:id, :telefone, :primeiro_nome, :sobrenome, :crm, :especialidade, :cidade, :estado, :status_telefone, :now)
ON CONFLICT DO NOTHING;

-- write adopt: configure a chip of the simulator that the synchronisation created first
UPDATE chips
SET telefone = coalesce(telefone, :telefone), tipo = :tipo, status = 'active', evolution_connected = TRUE, fase_warmup = 'operacao',
    warming_started_at = :since, trust_score = :trust, trust_level = 'verde', pode_prospectar = :sends, pode_followup = :sends,
    pode_responder = :sends, limite_hora = 30, limite_dia = 100, delay_minimo_segundos = 45, updated_at = :now
WHERE instance_name = :instance AND status IN ('pending', 'warming');

-- write chip: insert a chip of the simulator with months of history; an existing row is unchanged
INSERT INTO chips (id, telefone, instance_name, tipo, status, evolution_connected, fase_warmup, warming_started_at, trust_score,
                   trust_level, pode_prospectar, pode_followup, pode_responder, limite_hora, limite_dia, delay_minimo_segundos,
                   created_at, updated_at)
VALUES (:id, :telefone, :instance, :tipo, 'active', TRUE, 'operacao', :since, :trust, 'verde', :sends, :sends, :sends, 30, 100, 45,
        :now, :now)
ON CONFLICT DO NOTHING;

-- write campaign: insert a campaign once per name
INSERT INTO campanhas (nome_template, tipo_campanha, corpo, status, agendar_para, audience_filters, objetivo, created_by, created_at, updated_at)
SELECT demo.nome, demo.tipo, demo.corpo, demo.status, :agendar_para, :filters, 'demonstração', 'seed-demo', :now, :now
FROM (SELECT CAST(:nome AS TEXT) AS nome, CAST(:tipo AS TEXT) AS tipo, CAST(:corpo AS TEXT) AS corpo, CAST(:status AS TEXT) AS status) AS demo
WHERE NOT EXISTS (SELECT 1 FROM campanhas WHERE nome_template = demo.nome AND created_by = 'seed-demo');
