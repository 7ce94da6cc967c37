-- write lock on sqlite: no lock is needed, because SQLite has one write transaction at a time
SELECT :keys AS keys;

-- write lock on postgres: lock the keys until the transaction ends; every process locks them in the same order
SELECT pg_advisory_xact_lock(hashtextextended(key, 7211405564))
FROM (SELECT key FROM jsonb_array_elements_text(:keys) WITH ORDINALITY AS given (key, place) ORDER BY place) AS ordered;

-- read blocking: the instant of the token that must expire before another token is allowed
SELECT counts_at FROM rate_tokens WHERE rate_key = :key AND counts_at > :since ORDER BY counts_at DESC LIMIT 1 OFFSET :others;

-- write take: insert a token of a key
INSERT INTO rate_tokens (reservation, rate_key, counts_at, kept_until) VALUES (:id, :key, :counts_at, :kept_until);

-- write take_if on postgres: unused, because the statement could see a state older than the lock it waited for
SELECT :id::uuid, :key::text, :counts_at::timestamptz, :kept_until::timestamptz, :since::timestamptz, :others::bigint;

-- write take_if on sqlite: insert a token of a key if the limit allows it; SQLite has one write statement at a time
INSERT INTO rate_tokens (reservation, rate_key, counts_at, kept_until)
SELECT :id, :key, :counts_at, :kept_until
WHERE NOT EXISTS (SELECT 1 FROM rate_tokens WHERE rate_key = :key AND counts_at > :since LIMIT 1 OFFSET :others);

-- write confirm on sqlite: count the token from now on
UPDATE rate_tokens SET counts_at = :now, confirmed = TRUE WHERE reservation = :id AND NOT confirmed;

-- write confirm on postgres: count the token from now on
UPDATE rate_tokens SET counts_at = coalesce(:now::timestamptz, clock_timestamp()), confirmed = TRUE
WHERE reservation = :id AND NOT confirmed;

-- write release: delete a token as if it had never been taken
DELETE FROM rate_tokens WHERE reservation = :id AND NOT confirmed;

-- read used: the number of tokens that count
SELECT count(*) AS used FROM rate_tokens WHERE rate_key = :key AND counts_at > :since;

-- write prune: delete a bounded number of tokens that no longer count
DELETE FROM rate_tokens WHERE (reservation, rate_key) IN
    (SELECT reservation, rate_key FROM rate_tokens WHERE kept_until < :before ORDER BY kept_until LIMIT :limit);
