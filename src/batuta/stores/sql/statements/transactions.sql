-- read oldest on sqlite: unused
SELECT NULL AS pid, NULL AS name, NULL AS seconds, NULL AS transactions WHERE 0;

-- read oldest on postgres: the transaction that has prevented the removal of dead rows of this database for the longest time
-- Sessions that this role may not see (it needs pg_monitor) have no values and are omitted.
SELECT pid, name, extract(epoch FROM clock_timestamp() - started_at)::float8 AS seconds, transactions
FROM (
    SELECT pid, coalesce(nullif(application_name, ''), usename, backend_type) AS name, xact_start AS started_at,
           greatest(age(backend_xmin), age(backend_xid)) AS transactions
    FROM pg_stat_activity
    WHERE (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL) AND xact_start IS NOT NULL AND pid <> pg_backend_pid()
      AND (datname = current_database() OR datname IS NULL) AND backend_type <> 'autovacuum worker'
    UNION ALL
    SELECT NULL, gid, prepared, age(transaction) FROM pg_prepared_xacts WHERE database = current_database()
) AS open
ORDER BY started_at LIMIT 1;
