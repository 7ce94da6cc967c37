-- read tasks on sqlite: outcomes of the latest readings
SELECT count(CASE WHEN status = 'complete' THEN 1 END) AS feitas,
       count(CASE WHEN status = 'failed' THEN 1 END) AS falhas,
       count(CASE WHEN finished_at > :lately THEN 1 END) AS recentes,
       coalesce(avg(finished_at - started_at) / 1000000.0, 0.0) AS segundos
FROM tasks WHERE queue = 'agendamentos' AND finished_at > :hour_ago;

-- read tasks on postgres: outcomes of the latest readings
SELECT count(*) FILTER (WHERE status = 'complete') AS feitas,
       count(*) FILTER (WHERE status = 'failed') AS falhas,
       count(*) FILTER (WHERE finished_at > :lately) AS recentes,
       coalesce(extract(epoch FROM avg(finished_at - started_at)), 0)::float8 AS segundos
FROM tasks WHERE queue = 'agendamentos' AND finished_at > :hour_ago;

-- read imports: open imports
SELECT count(*) AS abertas, min(updated_at) AS "desde [TIMESTAMPTZ]" FROM importacoes WHERE finished_at IS NULL;
