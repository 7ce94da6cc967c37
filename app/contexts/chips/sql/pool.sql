-- read known: every chip of the gateway; for a pending chip, also its status before it became pending
SELECT chip.id, chip.instance_name, chip.status, chip.telefone,
       (SELECT moved.from_status FROM chip_transitions AS moved WHERE moved.chip_id = chip.id AND moved.to_status = 'pending'
        ORDER BY moved.created_at DESC, moved.id DESC LIMIT 1) AS "antes [TEXT]"
FROM chips AS chip WHERE chip.provider = 'evolution' ORDER BY chip.instance_name;

-- write add: insert a chip for an unknown instance; it sends only after an operator activates it
INSERT INTO chips (id, telefone, instance_name, status, evolution_connected, warming_started_at, created_at, updated_at)
VALUES (:id, :telefone, :instance, :status, :connected, :warming_since, :now, :now)
ON CONFLICT DO NOTHING;

-- write seen: store the connection state that the gateway returned, unless a webhook event arrived since the request
UPDATE chips
SET evolution_connected = :connected, telefone = coalesce(telefone, :telefone),
    conexao_falhas = CASE WHEN :connected THEN 0 ELSE conexao_falhas END, updated_at = :now
WHERE id = :id AND (conexao_em IS NULL OR conexao_em <= :asked_at);

-- write rename: move a known number to another instance
UPDATE chips SET instance_name = :instance, updated_at = :now WHERE id = :id;

-- read senders: chips that send, whose connection is therefore checked
SELECT id, instance_name, evolution_connected, conexao_falhas FROM chips
WHERE provider = 'evolution' AND tipo = 'julia' AND status = 'active' ORDER BY instance_name;

-- write answered: mark the connection as open
UPDATE chips SET evolution_connected = TRUE, conexao_falhas = 0, updated_at = :now
WHERE id = :id AND (conexao_em IS NULL OR conexao_em <= :asked_at);

-- write shut: count one more check with a closed connection; from the second in a row the chip is disconnected
UPDATE chips
SET conexao_falhas = conexao_falhas + 1,
    evolution_connected = CASE WHEN conexao_falhas + 1 >= :counts_from THEN FALSE ELSE evolution_connected END, updated_at = :now
WHERE id = :id AND (conexao_em IS NULL OR conexao_em <= :asked_at);

-- read figures: message counts of each chip in a period
WITH reached AS (
    SELECT chip_id, cliente_id, min(created_at) AS first_at FROM interacoes
    WHERE tipo = 'saida' AND chip_id IS NOT NULL AND cliente_id IS NOT NULL AND created_at >= :since AND created_at < :until
    GROUP BY chip_id, cliente_id),
people AS (
    SELECT reached.chip_id, count(*) AS contatados,
           count(CASE WHEN EXISTS (SELECT 1 FROM interacoes AS came WHERE came.cliente_id = reached.cliente_id
                     AND came.chip_id = reached.chip_id AND came.tipo = 'entrada' AND came.created_at >= reached.first_at
                     AND came.created_at < :until) THEN 1 END) AS responderam,
           count(CASE WHEN EXISTS (SELECT 1 FROM interacoes AS came WHERE came.cliente_id = reached.cliente_id
                     AND came.chip_id = reached.chip_id AND came.tipo = 'entrada' AND came.pedido = 'opt_out'
                     AND came.created_at >= reached.first_at AND came.created_at < :until) THEN 1 END) AS bloquearam
    FROM reached GROUP BY reached.chip_id),
said AS (
    SELECT chip_id,
           count(CASE WHEN tipo = 'saida' THEN 1 END) AS enviadas,
           count(CASE WHEN tipo = 'entrada' THEN 1 END) AS recebidas,
           count(CASE WHEN tipo = 'saida' AND delivery_status IN ('delivered', 'read') THEN 1 END) AS entregues,
           count(CASE WHEN tipo = 'saida' AND delivery_status = 'read' THEN 1 END) AS lidas,
           count(CASE WHEN tipo = 'saida' AND delivery_status = 'failed' THEN 1 END) AS falhas,
           count(CASE WHEN tipo = 'saida' AND (created_at < :settled OR delivery_status IN ('delivered', 'read', 'failed'))
                      THEN 1 END) AS decididas
    FROM interacoes WHERE chip_id IS NOT NULL AND created_at >= :since AND created_at < :until GROUP BY chip_id)
SELECT chip.id, coalesce(said.enviadas, 0) AS enviadas, coalesce(said.recebidas, 0) AS recebidas,
       coalesce(said.entregues, 0) AS entregues, coalesce(said.lidas, 0) AS lidas, coalesce(said.falhas, 0) AS falhas,
       coalesce(said.decididas, 0) AS decididas, coalesce(people.contatados, 0) AS contatados,
       coalesce(people.responderam, 0) AS responderam, coalesce(people.bloquearam, 0) AS bloquearam
FROM chips AS chip LEFT JOIN said ON said.chip_id = chip.id LEFT JOIN people ON people.chip_id = chip.id;

-- read judged: chips whose trust is computed, with their errors
SELECT chip.id, chip.telefone, chip.tipo, chip.status, chip.fase_warmup, chip.trust_score, chip.trust_level, chip.tipos_midia_usados,
       chip.ultimo_erro_em,
       coalesce(chip.warming_started_at, chip.created_at) AS "desde [TIMESTAMPTZ]",
       (SELECT count(*) FROM chip_erros AS met WHERE met.chip_id = chip.id AND met.created_at >= :day_ago)
       + (SELECT count(*) FROM interacoes AS lost WHERE lost.chip_id = chip.id AND lost.tipo = 'saida'
          AND lost.delivery_status = 'failed' AND lost.created_at >= :day_ago) AS erros,
       (SELECT max(met.created_at) FROM chip_erros AS met WHERE met.chip_id = chip.id) AS "erro_em [TIMESTAMPTZ]",
       (SELECT max(lost.created_at) FROM interacoes AS lost WHERE lost.chip_id = chip.id AND lost.tipo = 'saida'
        AND lost.delivery_status = 'failed') AS "perda_em [TIMESTAMPTZ]",
       (SELECT count(*) FROM chip_erros AS met WHERE met.chip_id = chip.id
        AND NOT EXISTS (SELECT 1 FROM interacoes AS sent WHERE sent.chip_id = chip.id AND sent.tipo = 'saida'
                        AND sent.created_at >= met.created_at)
        AND NOT EXISTS (SELECT 1 FROM chip_transitions AS moved WHERE moved.chip_id = chip.id AND moved.to_status = 'active'
                        AND moved.created_at >= met.created_at)) AS seguidas,
       EXISTS (SELECT 1 FROM chip_trust_history AS past WHERE past.chip_id = chip.id) AS "tem_historia [BOOLEAN]"
FROM chips AS chip WHERE chip.status NOT IN ('provisioned', 'pending', 'banned', 'cancelled') ORDER BY chip.instance_name;

-- write judge: store trust, permissions and limits
UPDATE chips
SET trust_score = :trust, trust_level = :level, trust_factors = :factors, taxa_resposta = :taxa_resposta,
    taxa_delivery = :taxa_delivery, taxa_block = :taxa_block, conversas_bidirecionais = :conversas, tipos_midia_usados = :midia,
    erros_ultimas_24h = :erros, dias_sem_erro = :dias_sem_erro, pode_prospectar = :pode_prospectar,
    pode_followup = :pode_followup, pode_responder = :pode_responder, limite_hora = :limite_hora, limite_dia = :limite_dia,
    delay_minimo_segundos = :delay_minimo_segundos, updated_at = :now
WHERE id = :id;

-- write history: store a row of the trust history
INSERT INTO chip_trust_history (id, chip_id, trust_score, trust_level, factors, created_at)
VALUES (:id, :chip_id, :trust, :level, :factors, :now);

-- read lock on sqlite: the write transaction itself is the lock
SELECT id, trust_score, trust_level, status FROM chips ORDER BY id;

-- read lock on postgres: lock the rows, so that no count changes meanwhile
SELECT id, trust_score, trust_level, status FROM chips ORDER BY id FOR UPDATE;

-- read snapshots: chips that already have a snapshot of a day
SELECT chip_id FROM chip_daily_snapshots WHERE data = :data;

-- write snapshot: upsert one row per chip and day. Counts are recomputed; after the end of the day, trust and status
-- stay as first stored
INSERT INTO chip_daily_snapshots (id, chip_id, data, msgs_enviadas, msgs_recebidas, msgs_entregues, msgs_lidas, msgs_erro,
                                  taxa_resposta, taxa_delivery, taxa_block, trust_score, trust_level, status, created_at)
VALUES (:id, :chip_id, :data, :enviadas, :recebidas, :entregues, :lidas, :falhas, :taxa_resposta, :taxa_delivery, :taxa_block,
        :trust, :level, :status, :now)
ON CONFLICT (chip_id, data) DO UPDATE
SET msgs_enviadas = excluded.msgs_enviadas, msgs_recebidas = excluded.msgs_recebidas, msgs_entregues = excluded.msgs_entregues,
    msgs_lidas = excluded.msgs_lidas, msgs_erro = excluded.msgs_erro, taxa_resposta = excluded.taxa_resposta,
    taxa_delivery = excluded.taxa_delivery, taxa_block = excluded.taxa_block,
    trust_score = CASE WHEN :is_over THEN chip_daily_snapshots.trust_score ELSE excluded.trust_score END,
    trust_level = CASE WHEN :is_over THEN chip_daily_snapshots.trust_level ELSE excluded.trust_level END,
    status = CASE WHEN :is_over THEN chip_daily_snapshots.status ELSE excluded.status END;

-- write recount: set today's counts, recomputed from the message tables
UPDATE chips SET msgs_enviadas_hoje = :enviadas, msgs_recebidas_hoje = :recebidas, updated_at = :now WHERE id = :id;

-- read shown: chips as shown to operators
SELECT id, instance_name, telefone, tipo, status, evolution_connected, conexao_falhas, fase_warmup, trust_score, trust_level,
       pode_prospectar, pode_followup, pode_responder, msgs_enviadas_hoje, msgs_recebidas_hoje, limite_hora, limite_dia,
       erros_ultimas_24h, cooldown_until, ban_reason,
       CASE WHEN cooldown_until IS NOT NULL THEN (SELECT met.motivo FROM chip_erros AS met WHERE met.chip_id = chips.id
        ORDER BY met.created_at DESC, met.id DESC LIMIT 1) END AS "descanso_por [TEXT]"
FROM chips WHERE status <> 'cancelled' ORDER BY tipo, instance_name;

-- read waiting: number of messages of the send queue that are due, or that were postponed for a moment
SELECT count(*) AS waiting FROM fila_mensagens
WHERE fila = 'fila_mensagens' AND status = 'pendente' AND lease_until IS NULL AND envio_estado IS NULL AND agendar_para <= :soon;
