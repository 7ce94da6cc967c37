-- write create: a file came
INSERT INTO importacoes (id, arquivo, sha256, total_rows, valid_rows, invalid_rows, skipped, errors, warnings, created_by,
                         created_at, updated_at)
VALUES (:id, :arquivo, :sha256, :total_rows, :valid_rows, :invalid_rows, :skipped, :errors, :warnings, :by, :now, :now);

-- write keep: some of its rows
INSERT INTO importacao_blocos (importacao_id, bloco, linhas) VALUES (:id, :bloco, :linhas);

-- write receive: all of its rows are kept
UPDATE importacoes SET status = 'em_andamento', updated_at = :now WHERE id = :id AND status = 'recebendo';

-- write take on sqlite: the next rows; they go with this transaction
DELETE FROM importacao_blocos
WHERE importacao_id = :id AND bloco = (SELECT min(bloco) FROM importacao_blocos WHERE importacao_id = :id)
RETURNING bloco, linhas AS "linhas [JSONB]";

-- write take on postgres: the next rows that nobody has; they go with this transaction
DELETE FROM importacao_blocos
WHERE importacao_id = :id AND bloco = (SELECT bloco FROM importacao_blocos WHERE importacao_id = :id
                                       ORDER BY bloco LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING bloco, linhas;

-- write count: what became of some rows
UPDATE importacoes
SET imported = imported + :imported, duplicates = duplicates + :duplicates, cars_created = cars_created + :cars,
    jobs_enqueued = jobs_enqueued + :jobs, updated_at = :now
WHERE id = :id;

-- write finish: nothing of it is left
UPDATE importacoes SET status = 'concluida', finished_at = :now, updated_at = :now
WHERE id = :id AND status = 'em_andamento'
  AND NOT EXISTS (SELECT 1 FROM importacao_blocos AS left_over WHERE left_over.importacao_id = importacoes.id);

-- read show: one
SELECT * FROM importacoes WHERE id = :id;

-- read recent: the newest first
SELECT * FROM importacoes ORDER BY created_at DESC LIMIT :limit;

-- read interrupted: begun, and nobody goes on
SELECT id FROM importacoes WHERE finished_at IS NULL AND status = 'em_andamento' AND updated_at < :before ORDER BY updated_at LIMIT 20;

-- read unreceived: whose sender never got an answer
SELECT id FROM importacoes WHERE finished_at IS NULL AND status = 'recebendo' AND updated_at < :before ORDER BY updated_at LIMIT 20;

-- write drop: its rows
DELETE FROM importacao_blocos WHERE importacao_id = :id;

-- write fail: it was never received whole
UPDATE importacoes SET status = 'falhou', finished_at = :now, updated_at = :now WHERE id = :id AND status = 'recebendo';

-- write forget: imports that ended long ago, a bounded number of them
DELETE FROM importacoes WHERE id IN (SELECT id FROM importacoes WHERE finished_at < :before ORDER BY finished_at LIMIT :limit);
