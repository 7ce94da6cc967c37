-- write store: store the encrypted session of an account; the owner of an earlier session loses it
INSERT INTO telegram_sessoes (conta_id, cifrada, created_at, updated_at) VALUES (:conta_id, :cifrada, :now, :now)
ON CONFLICT (conta_id) DO UPDATE SET cifrada = excluded.cifrada, dono = NULL, dono_ate = NULL, updated_at = excluded.updated_at;

-- write take: take the ownership of a session; no row if the session or its owner changed, or the owner renewed its lease
UPDATE telegram_sessoes SET dono = :dono, dono_ate = :ate
WHERE conta_id = :conta_id AND cifrada = :cifrada AND (dono IS NULL OR dono = :antes AND dono_ate = :antes_ate);

-- write renew: renew the ownership of a session; no row if it was lost
UPDATE telegram_sessoes SET dono_ate = :ate WHERE conta_id = :conta_id AND dono = :dono;

-- write release: give up the ownership of a session
UPDATE telegram_sessoes SET dono = NULL, dono_ate = NULL WHERE conta_id = :conta_id AND dono = :dono;

-- write encrypt_again: store a session under another key, if it has not changed meanwhile
UPDATE telegram_sessoes SET cifrada = :cifrada, updated_at = :now WHERE conta_id = :conta_id AND cifrada = :antes;

-- write remove: delete the session of an account
DELETE FROM telegram_sessoes WHERE conta_id = :conta_id;

-- read session: an encrypted session, and the process that owns it
SELECT cifrada, dono, dono_ate FROM telegram_sessoes WHERE conta_id = :conta_id;

-- read all_sessions: every encrypted session
SELECT conta_id, cifrada FROM telegram_sessoes ORDER BY conta_id;
