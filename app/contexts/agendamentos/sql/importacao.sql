-- write create: record an accepted file
INSERT INTO importacoes (id, arquivo, sha256, status, total_rows, escolhidas, colunas, created_by, created_at, updated_at)
VALUES (:id, :arquivo, :sha256, 'em_andamento', :total_rows, :escolhidas, :colunas, :by, :now, :now);

-- write remember: store the chosen columns of files with these titles
INSERT INTO colunas_de_planilhas (forma, colunas, created_by, updated_at) VALUES (:forma, :colunas, :by, :now)
ON CONFLICT (forma) DO UPDATE SET colunas = excluded.colunas, created_by = excluded.created_by, updated_at = excluded.updated_at;

-- read remembered: the chosen columns of files with these titles
SELECT colunas FROM colunas_de_planilhas WHERE forma = :forma;

-- write keep: store the file until its last row is an appointment
INSERT INTO importacao_arquivos (importacao_id, conteudo) VALUES (:id, :conteudo);

-- write advance: claim a range of lines, unless another process claimed it first
UPDATE importacoes SET linha = :ate, updated_at = :now WHERE id = :id AND status = 'em_andamento' AND linha = :desde;

-- write count: add to the counts of rows read and of rows written
UPDATE importacoes
SET valid_rows = :valid - recusadas, invalid_rows = :invalid + recusadas, skipped = :skipped, imported = imported + :imported,
    duplicates = duplicates + :duplicates, cars_created = cars_created + :cars, jobs_enqueued = jobs_enqueued + :jobs
WHERE id = :id;

-- write refuse: count a row that the database refused
UPDATE importacoes
SET recusadas = recusadas + 1, valid_rows = valid_rows - 1, invalid_rows = invalid_rows + 1, errors = :errors WHERE id = :id;

-- write finish: mark an import as complete
UPDATE importacoes
SET status = 'concluida', total_rows = :total_rows, errors = :errors, warnings = :warnings, finished_at = :now, updated_at = :now
WHERE id = :id;

-- write drop: delete the file
DELETE FROM importacao_arquivos WHERE importacao_id = :id;

-- read show: one import
SELECT * FROM importacoes WHERE id = :id;

-- read file: the file and the last imported line of an open import
SELECT import.linha, import.arquivo, import.escolhidas, file.conteudo
FROM importacoes AS import JOIN importacao_arquivos AS file ON file.importacao_id = import.id
WHERE import.id = :id AND import.status = 'em_andamento';

-- read recent: imports, newest first
SELECT * FROM importacoes ORDER BY created_at DESC LIMIT :limit;

-- read interrupted: open imports without recent progress
SELECT id FROM importacoes WHERE finished_at IS NULL AND status = 'em_andamento' AND updated_at < :before ORDER BY updated_at LIMIT 20;

-- write resume: claim an interrupted import, unless another process works on it
UPDATE importacoes SET retomadas = retomadas + 1, updated_at = :now
WHERE id = :id AND status = 'em_andamento' AND updated_at < :before AND retomadas < :most;

-- write wait: subtract an attempt to resume an import that must not count
UPDATE importacoes SET retomadas = retomadas - 1 WHERE id = :id;

-- write fail: mark an import as failed after its last attempt
UPDATE importacoes SET status = 'falhou', errors = :errors, finished_at = :now, updated_at = :now
WHERE id = :id AND status = 'em_andamento' AND updated_at < :before AND retomadas >= :most;

-- write forget: delete a batch of imports that ended long ago
DELETE FROM importacoes WHERE id IN (SELECT id FROM importacoes WHERE finished_at < :before ORDER BY finished_at LIMIT :limit);
