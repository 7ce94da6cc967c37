-- write lead on sqlite: have the lease, or keep it; no row: somebody else has it
INSERT INTO leases (name, owner, lease_until) VALUES (:name, :owner, coalesce(:now, now()) + :lease)
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, lease_until = excluded.lease_until
WHERE leases.owner = excluded.owner OR leases.lease_until <= coalesce(:now, now())
RETURNING coalesce(:now, now()) AS "now [TIMESTAMPTZ]";

-- write lead on postgres: have the lease, or keep it; no row: somebody else has it
INSERT INTO leases (name, owner, lease_until)
VALUES (:name, :owner, coalesce(:now, statement_timestamp()) + :lease::bigint * INTERVAL '1 microsecond')
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, lease_until = excluded.lease_until
WHERE leases.owner = excluded.owner OR leases.lease_until <= coalesce(:now, statement_timestamp())
RETURNING coalesce(:now, statement_timestamp()) AS now;

-- read alerted: what was last said about each cause
SELECT cause, told_severity, told_at, since, message, gone_at FROM health_causes;

-- write tell: what is said about a cause now
INSERT INTO health_causes (cause, told_severity, told_at, since, message, gone_at)
VALUES (:cause, :severity, :at, :since, :message, :gone_at)
ON CONFLICT (cause) DO UPDATE
SET told_severity = excluded.told_severity, told_at = excluded.told_at, since = excluded.since, message = excluded.message,
    gone_at = excluded.gone_at;

-- write forget: a cause that has been gone for long
DELETE FROM health_causes WHERE cause = :cause;

-- read seen: how health was when somebody looked last
SELECT setting FROM app_settings WHERE name = 'health_seen';

-- write note_seen: how it is now
INSERT INTO app_settings (name, setting, updated_at) VALUES ('health_seen', :setting, :now)
ON CONFLICT (name) DO UPDATE SET setting = excluded.setting, updated_at = excluded.updated_at;

-- write put: to be sent, or sent already
INSERT INTO alertas_enviados
    (id, tipo, severidade, mensagem, next_step, created_at, sink, kind, outcome, try_at, sent_at, resolved_at)
VALUES (:id, :cause, :severity, :message, :next_step, :now, :sink, :kind, :outcome, :try_at, :sent_at, :resolved_at);

-- write resolve: its cause is gone
UPDATE alertas_enviados SET resolved_at = :now WHERE tipo = :cause AND resolved_at IS NULL;

-- read pending on sqlite: what is to be sent now
SELECT id, tipo, severidade, mensagem, next_step, sink, kind, tries FROM alertas_enviados INDEXED BY alertas_enviados_pending
WHERE outcome = 'pending' AND try_at <= coalesce(:now, now()) ORDER BY try_at, id LIMIT :limit;

-- read pending on postgres: what is to be sent now
SELECT id, tipo, severidade, mensagem, next_step, sink, kind, tries FROM alertas_enviados
WHERE outcome = 'pending' AND try_at <= coalesce(:now, statement_timestamp()) ORDER BY try_at, id LIMIT :limit;

-- write sent on sqlite: it arrived
UPDATE alertas_enviados SET outcome = 'sent', tries = tries + 1, sent_at = coalesce(:now, now()) WHERE id = :id;

-- write sent on postgres: it arrived
UPDATE alertas_enviados SET outcome = 'sent', tries = tries + 1, sent_at = coalesce(:now, statement_timestamp()) WHERE id = :id;

-- write postpone on sqlite: it did not arrive, and is tried again
UPDATE alertas_enviados SET tries = tries + 1, try_at = coalesce(:now, now()) + :again_in WHERE id = :id;

-- write postpone on postgres: it did not arrive, and is tried again
UPDATE alertas_enviados
SET tries = tries + 1, try_at = coalesce(:now, statement_timestamp()) + :again_in::bigint * INTERVAL '1 microsecond'
WHERE id = :id;

-- write give_up: it did not arrive, too often
UPDATE alertas_enviados SET tries = tries + 1, outcome = 'failed' WHERE id = :id;

-- write prune: what was sent long ago, a bounded number of them
DELETE FROM alertas_enviados WHERE id IN (SELECT id FROM alertas_enviados WHERE created_at < :before ORDER BY created_at LIMIT :limit);
