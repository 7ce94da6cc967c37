-- write lock on sqlite: nothing to do: a transaction that writes is the only one, in all processes
SELECT :keys AS keys;

-- write lock on postgres: these keys are ours until the transaction ends; everybody takes them in the same order
SELECT pg_advisory_xact_lock(hashtextextended(key, 7211405564))
FROM (SELECT key FROM jsonb_array_elements_text(:keys) WITH ORDINALITY AS given (key, place) ORDER BY place) AS ordered;

-- read blocking: when the token counts that has to go before there is room for another
SELECT counts_at FROM rate_tokens WHERE rate_key = :key AND counts_at > :since ORDER BY counts_at DESC LIMIT 1 OFFSET :others;

-- write take: a token of one key
INSERT INTO rate_tokens (reservation, rate_key, counts_at, kept_until) VALUES (:id, :key, :counts_at, :kept_until);

-- write take_if on postgres: nobody asks: what a statement sees there is older than what it waited for
SELECT :id::uuid, :key::text, :counts_at::timestamptz, :kept_until::timestamptz, :since::timestamptz, :others::bigint;

-- write take_if on sqlite: a token of one key, if there is room; a statement that writes is the only one
INSERT INTO rate_tokens (reservation, rate_key, counts_at, kept_until)
SELECT :id, :key, :counts_at, :kept_until
WHERE NOT EXISTS (SELECT 1 FROM rate_tokens WHERE rate_key = :key AND counts_at > :since LIMIT 1 OFFSET :others);

-- write confirm on sqlite: it counts from now on
UPDATE rate_tokens SET counts_at = :now, confirmed = TRUE WHERE reservation = :id AND NOT confirmed;

-- write confirm on postgres: it counts from now on
UPDATE rate_tokens SET counts_at = coalesce(:now::timestamptz, clock_timestamp()), confirmed = TRUE
WHERE reservation = :id AND NOT confirmed;

-- write release: as if it had never been taken
DELETE FROM rate_tokens WHERE reservation = :id AND NOT confirmed;

-- read used: how many count
SELECT count(*) AS used FROM rate_tokens WHERE rate_key = :key AND counts_at > :since;

-- write prune: tokens that count for nobody any more, a bounded number of them
DELETE FROM rate_tokens WHERE (reservation, rate_key) IN
    (SELECT reservation, rate_key FROM rate_tokens WHERE kept_until < :before ORDER BY kept_until LIMIT :limit);
