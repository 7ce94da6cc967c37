-- write create: a file that can be taken
INSERT INTO importacoes (id, arquivo, sha256, status, total_rows, created_by, created_at, updated_at)
VALUES (:id, :arquivo, :sha256, 'em_andamento', :total_rows, :by, :now, :now);

-- write keep: the file, until its last row is an appointment
INSERT INTO importacao_arquivos (importacao_id, conteudo) VALUES (:id, :conteudo);

-- write advance: the rows from one line to another are ours, unless somebody else was here
UPDATE importacoes SET linha = :ate, updated_at = :now WHERE id = :id AND status = 'em_andamento' AND linha = :desde;

-- write count: what the rows so far are, and what became of some
UPDATE importacoes
SET valid_rows = :valid - recusadas, invalid_rows = :invalid + recusadas, skipped = :skipped, imported = imported + :imported,
    duplicates = duplicates + :duplicates, cars_created = cars_created + :cars, jobs_enqueued = jobs_enqueued + :jobs
WHERE id = :id;

-- write refuse: a row that could not be written
UPDATE importacoes
SET recusadas = recusadas + 1, valid_rows = valid_rows - 1, invalid_rows = invalid_rows + 1, errors = :errors WHERE id = :id;

-- write finish: nothing of it is left
UPDATE importacoes
SET status = 'concluida', total_rows = :total_rows, errors = :errors, warnings = :warnings, finished_at = :now, updated_at = :now
WHERE id = :id;

-- write drop: the file
DELETE FROM importacao_arquivos WHERE importacao_id = :id;

-- read show: one
SELECT * FROM importacoes WHERE id = :id;

-- read file: one that is not finished, and how far it is
SELECT import.linha, import.arquivo, file.conteudo
FROM importacoes AS import JOIN importacao_arquivos AS file ON file.importacao_id = import.id
WHERE import.id = :id AND import.status = 'em_andamento';

-- read recent: the newest first
SELECT * FROM importacoes ORDER BY created_at DESC LIMIT :limit;

-- read interrupted: begun, and nobody goes on
SELECT id FROM importacoes WHERE finished_at IS NULL AND status = 'em_andamento' AND updated_at < :before ORDER BY updated_at LIMIT 20;

-- write resume: it is ours to go on with, unless somebody else is at it
UPDATE importacoes SET retomadas = retomadas + 1, updated_at = :now
WHERE id = :id AND status = 'em_andamento' AND updated_at < :before AND retomadas < :most;

-- write fail: nobody came to its end
UPDATE importacoes SET status = 'falhou', errors = :errors, finished_at = :now, updated_at = :now
WHERE id = :id AND status = 'em_andamento' AND updated_at < :before AND retomadas >= :most;

-- write forget: imports that ended long ago, a bounded number of them
DELETE FROM importacoes WHERE id IN (SELECT id FROM importacoes WHERE finished_at < :before ORDER BY finished_at LIMIT :limit);
