-- write keep: insert a token
INSERT INTO api_tokens (id, name, secret_hash, scopes, created_by, created_at)
VALUES (:id, :name, :secret_hash, :scopes, :by, :now);

-- read token: a token by its public part
SELECT id, name, secret_hash, scopes, created_by, created_at, revoked_at FROM api_tokens WHERE id = :id;

-- read tokens: all tokens, newest first
SELECT id, name, secret_hash, scopes, created_by, created_at, revoked_at FROM api_tokens ORDER BY created_at DESC, id;

-- write revoke: revoke a token
UPDATE api_tokens SET revoked_at = :now WHERE id = :id AND revoked_at IS NULL;
