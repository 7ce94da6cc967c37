-- read latest: the newest recorded version of a document
SELECT id, doc_hash, resultado, avisos, created_at FROM briefing_sync_log WHERE documento = :documento ORDER BY created_at DESC, id DESC LIMIT 1;

-- write record: record a version of a document
INSERT INTO briefing_sync_log (id, documento, origem, doc_title, doc_hash, conteudo_raw, parseado, avisos, resultado, created_at)
VALUES (:id, :documento, :origem, :titulo, :hash, :texto, :parseado, :avisos, :resultado, :now);

-- read active: the active directives, most important first
SELECT id, tipo, versao, conteudo, prioridade, documento, created_at, encerrada_em FROM diretrizes
WHERE encerrada_em IS NULL ORDER BY prioridade DESC, tipo;

-- read active_of: the active directives that a document produced
SELECT tipo, versao, conteudo FROM diretrizes WHERE encerrada_em IS NULL AND documento = :documento;

-- read versions: every version of a directive, newest first
SELECT id, tipo, versao, conteudo, prioridade, documento, created_at, encerrada_em FROM diretrizes WHERE tipo = :tipo ORDER BY versao DESC LIMIT :limite;

-- read last_version: the number of the newest version of a directive
SELECT coalesce(max(versao), 0) AS versao FROM diretrizes WHERE tipo = :tipo;

-- write close: end the active directive
UPDATE diretrizes SET encerrada_em = :now WHERE tipo = :tipo AND encerrada_em IS NULL;

-- write add: add a version of a directive
INSERT INTO diretrizes (id, tipo, versao, conteudo, prioridade, sync_id, documento, created_at)
VALUES (:id, :tipo, :versao, :conteudo, :prioridade, :sync_id, :documento, :now);

-- read invalid: documents whose newest version is invalid
SELECT count(*) AS items, min(log.created_at) AS "desde [TIMESTAMPTZ]" FROM briefing_sync_log AS log
WHERE log.resultado = 'invalido'
  AND NOT EXISTS (SELECT 1 FROM briefing_sync_log AS later WHERE later.documento = log.documento
                  AND (later.created_at > log.created_at OR later.created_at = log.created_at AND later.id > log.id));
