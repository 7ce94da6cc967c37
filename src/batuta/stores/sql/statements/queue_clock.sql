-- write advance: record the current clock time, unless the clock was set back since the last recorded time
UPDATE clock_marks SET seen_at = max(seen_at, :now) WHERE queue_table = '{table}' AND seen_at <= :now + :tolerance;

-- read mark: the latest clock time that a process has recorded
SELECT seen_at FROM clock_marks WHERE queue_table = '{table}';

-- write set_mark: record the current clock time
INSERT INTO clock_marks (queue_table, seen_at) VALUES ('{table}', :now) ON CONFLICT (queue_table) DO UPDATE SET seen_at = excluded.seen_at;

-- write move_waiting: after the clock was set back, move due times back by the same step; an item without a delay becomes due
UPDATE {table} SET {available_at} = CASE
    WHEN {fence} = 0 AND {available_at} <= {created_at} THEN min(:now, {available_at} - :step) ELSE {available_at} - :step END
WHERE {is_waiting} AND {available_at} > :now AND typeof({available_at}) = 'integer'
  AND (({available_at} <= :seen AND ({fence} > 0 OR {all_waits_are_delays} OR {created_at} > :now))
       OR ({fence} > 0 AND {started_after_now})
       OR ({fence} = 0 AND {created_at} > :now AND ({all_waits_are_delays} OR {available_at} <= {created_at})));

-- write cut_leases: shorten every lease that ends more than one lease length from now
UPDATE {table} SET {lease_until} = :now + :lease WHERE {lease_until} IS NOT NULL AND {lease_until} > :now + :lease;
