-- write keep: insert a token
INSERT INTO api_tokens (id, name, secret_hash, scopes, created_by, created_at, expires_at, networks)
VALUES (:id, :name, :secret_hash, :scopes, :by, :now, :expires_at, :networks);

-- read token: a token by its public part
SELECT id, name, secret_hash, scopes, created_by, created_at, revoked_at, expires_at, networks, last_used_at
FROM api_tokens WHERE id = :id;

-- read tokens: all tokens, newest first
SELECT id, name, secret_hash, scopes, created_by, created_at, revoked_at, expires_at, networks, last_used_at
FROM api_tokens ORDER BY created_at DESC, id;

-- write revoke: revoke a token
UPDATE api_tokens SET revoked_at = :now WHERE id = :id AND revoked_at IS NULL;

-- write expire: end a token at an instant, unless it ends earlier
UPDATE api_tokens SET expires_at = :at
WHERE id = :id AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :at);

-- write used: note the last use of a token
UPDATE api_tokens SET last_used_at = :now WHERE id = :id;

-- write end_session: end a session
INSERT INTO ended_sessions (session, until) VALUES (:session, :until) ON CONFLICT (session) DO NOTHING;

-- read ended: whether a session was ended
SELECT 1 AS ended FROM ended_sessions WHERE session = :session;

-- write prune_sessions: forget sessions whose cookie has expired
DELETE FROM ended_sessions WHERE session IN (SELECT session FROM ended_sessions WHERE until < :before LIMIT :limit);
