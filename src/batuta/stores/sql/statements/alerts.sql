-- write lead on sqlite: take or renew the lease, and read the last health; returns no row if another process holds the lease
INSERT INTO leases (name, owner, lease_until) VALUES (:name, :owner, coalesce(:now, now()) + :lease)
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, lease_until = excluded.lease_until
WHERE leases.owner = excluded.owner OR leases.lease_until <= coalesce(:now, now())
RETURNING coalesce(:now, now()) AS "now [TIMESTAMPTZ]",
          (SELECT setting FROM app_settings WHERE name = 'health_seen') AS "seen [JSONB]",
          NOT EXISTS (SELECT 1 FROM health_causes)
              AND NOT EXISTS (SELECT 1 FROM health_incidents WHERE trigger_source = 'automatic' AND resolved_at IS NULL) AS "is_quiet [BOOLEAN]";

-- write lead on postgres: take or renew the lease, and read the last health; returns no row if another process holds the lease
INSERT INTO leases (name, owner, lease_until)
VALUES (:name, :owner, coalesce(:now, statement_timestamp()) + :lease::bigint * INTERVAL '1 microsecond')
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, lease_until = excluded.lease_until
WHERE leases.owner = excluded.owner OR leases.lease_until <= coalesce(:now, statement_timestamp())
RETURNING coalesce(:now, statement_timestamp()) AS now,
          (SELECT setting FROM app_settings WHERE name = 'health_seen') AS seen,
          NOT EXISTS (SELECT 1 FROM health_causes)
              AND NOT EXISTS (SELECT 1 FROM health_incidents WHERE trigger_source = 'automatic' AND resolved_at IS NULL) AS is_quiet;

-- read alerted: the last alert about each cause
SELECT cause, told_severity, told_at, since, message, gone_at FROM health_causes;

-- write save_cause: record the alert about a cause
INSERT INTO health_causes (cause, told_severity, told_at, since, message, gone_at)
VALUES (:cause, :severity, :at, :since, :message, :gone_at)
ON CONFLICT (cause) DO UPDATE
SET told_severity = excluded.told_severity, told_at = excluded.told_at, since = excluded.since, message = excluded.message,
    gone_at = excluded.gone_at;

-- write forget: delete a cause that recovered long ago
DELETE FROM health_causes WHERE cause = :cause;

-- read seen: health at the last check
SELECT setting FROM app_settings WHERE name = 'health_seen';

-- write note_seen: record health at this check
INSERT INTO app_settings (name, setting, updated_at) VALUES ('health_seen', :setting, :now)
ON CONFLICT (name) DO UPDATE SET setting = excluded.setting, updated_at = excluded.updated_at;

-- write put: insert an alert that is pending or sent
INSERT INTO alertas_enviados
    (id, tipo, severidade, mensagem, next_step, created_at, sink, kind, outcome, try_at, sent_at, resolved_at)
VALUES (:id, :cause, :severity, :message, :next_step, :now, :sink, :kind, :outcome, :try_at, :sent_at, :resolved_at);

-- write resolve: mark the alerts of a cause as resolved after its recovery
UPDATE alertas_enviados SET resolved_at = :now WHERE tipo = :cause AND resolved_at IS NULL;

-- read pending on sqlite: alerts that are due to be sent
SELECT id, tipo, severidade, mensagem, next_step, sink, kind, tries FROM alertas_enviados INDEXED BY alertas_enviados_pending
WHERE outcome = 'pending' AND try_at <= coalesce(:now, now()) ORDER BY try_at, id LIMIT :limit;

-- read pending on postgres: alerts that are due to be sent
SELECT id, tipo, severidade, mensagem, next_step, sink, kind, tries FROM alertas_enviados
WHERE outcome = 'pending' AND try_at <= coalesce(:now, statement_timestamp()) ORDER BY try_at, id LIMIT :limit;

-- write sent on sqlite: mark an alert as delivered
UPDATE alertas_enviados SET outcome = 'sent', tries = tries + 1, sent_at = coalesce(:now, now()) WHERE id = :id;

-- write sent on postgres: mark an alert as delivered
UPDATE alertas_enviados SET outcome = 'sent', tries = tries + 1, sent_at = coalesce(:now, statement_timestamp()) WHERE id = :id;

-- write postpone on sqlite: schedule the next delivery of a failed alert
UPDATE alertas_enviados SET tries = tries + 1, try_at = coalesce(:now, now()) + :again_in WHERE id = :id;

-- write postpone on postgres: schedule the next delivery of a failed alert
UPDATE alertas_enviados
SET tries = tries + 1, try_at = coalesce(:now, statement_timestamp()) + :again_in::bigint * INTERVAL '1 microsecond'
WHERE id = :id;

-- write give_up: stop trying to deliver an alert
UPDATE alertas_enviados SET tries = tries + 1, outcome = 'failed' WHERE id = :id;

-- write prune: delete a bounded number of old alerts
DELETE FROM alertas_enviados WHERE id IN (SELECT id FROM alertas_enviados WHERE created_at < :before ORDER BY created_at LIMIT :limit);
