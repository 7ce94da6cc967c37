-- read one: one conversation
SELECT talk.id, talk.cliente_id, talk.status, talk.controlled_by, talk.responsavel, talk.stage, talk.ultima_mensagem_em,
       talk.pausado_ate, talk.message_count, talk.chip_id, talk.created_at, talk.updated_at, talk.encerrada_em, person.primeiro_nome
FROM conversations AS talk JOIN clientes AS person ON person.id = talk.cliente_id WHERE talk.id = :id;

-- read listed: conversations, the most recently changed first
SELECT talk.id, talk.cliente_id, talk.status, talk.controlled_by, talk.responsavel, talk.stage, talk.ultima_mensagem_em,
       talk.pausado_ate, talk.message_count, talk.chip_id, talk.created_at, talk.updated_at, talk.encerrada_em, person.primeiro_nome
FROM conversations AS talk JOIN clientes AS person ON person.id = talk.cliente_id
WHERE (:encerradas OR talk.status IN ('active', 'paused', 'escalated'))
  AND (CAST(:com AS text) IS NULL OR talk.controlled_by = :com)
  AND (CAST(:estagio AS text) IS NULL OR talk.stage = :estagio)
  AND (talk.updated_at, talk.id) < (:antes_em, :antes_de)
ORDER BY talk.updated_at DESC, talk.id DESC LIMIT :limite OFFSET :pular;

-- read ended: ended conversations, the most recently ended first
SELECT talk.id, talk.cliente_id, talk.status, talk.controlled_by, talk.responsavel, talk.stage, talk.ultima_mensagem_em,
       talk.pausado_ate, talk.message_count, talk.chip_id, talk.created_at, talk.updated_at, talk.encerrada_em, person.primeiro_nome
FROM conversations AS talk JOIN clientes AS person ON person.id = talk.cliente_id
WHERE talk.encerrada_em IS NOT NULL AND (talk.encerrada_em, talk.id) < (:antes_em, :antes_de)
ORDER BY talk.encerrada_em DESC, talk.id DESC LIMIT :limite;

-- read waiting: entries of the pending list, and conversations that need a person and have none; the longest wait first
SELECT waiting.chave, waiting.pendencia_id, waiting.conversa_id, waiting.cliente_id, waiting.motivo, waiting.mensagens,
       waiting.desde AS "desde [TIMESTAMPTZ]", talk.stage, talk.status, talk.controlled_by, talk.responsavel,
       person.primeiro_nome
FROM (
    SELECT id AS chave, id AS pendencia_id, conversa_id, cliente_id, motivo, mensagens, created_at AS desde
    FROM pendencias WHERE resolvida_em IS NULL
    UNION ALL
    SELECT own.id, NULL, own.id, own.cliente_id, 'escalada', 0, own.updated_at FROM conversations AS own
    WHERE own.controlled_by = 'human' AND own.responsavel IS NULL AND own.status IN ('active', 'paused', 'escalated')
      AND NOT EXISTS (SELECT 1 FROM pendencias AS open WHERE open.conversa_id = own.id AND open.resolvida_em IS NULL)
) AS waiting
LEFT JOIN conversations AS talk ON talk.id = waiting.conversa_id LEFT JOIN clientes AS person ON person.id = waiting.cliente_id
WHERE (waiting.desde, waiting.chave) > (:depois_em, :depois_de)
ORDER BY waiting.desde, waiting.chave LIMIT :limite;

-- read count_waiting: number of rows of waiting
SELECT (SELECT count(*) FROM pendencias WHERE resolvida_em IS NULL) + count(*) AS items FROM conversations AS own
WHERE own.controlled_by = 'human' AND own.responsavel IS NULL AND own.status IN ('active', 'paused', 'escalated')
  AND NOT EXISTS (SELECT 1 FROM pendencias AS open WHERE open.conversa_id = own.id AND open.resolvida_em IS NULL);

-- read said: the last messages of a conversation, newest first
SELECT tipo, autor_tipo, conteudo, classe, delivery_status, created_at FROM interacoes
WHERE conversation_id = :id ORDER BY created_at DESC, id DESC LIMIT :limite;

-- read queued: messages of Julia to the doctor that are not sent yet
SELECT id, tipo, status, agendar_para, erro FROM fila_mensagens
WHERE cliente_id = :cliente_id AND status IN ('pendente', 'processando') ORDER BY agendar_para, id LIMIT :limite;

-- read history: every change of who handles the conversation, in order
SELECT ordem, acao, por, motivo, mensagens, em FROM conversas_historico WHERE conversa_id = :id ORDER BY ordem;

-- write note: add a line to the history
INSERT INTO conversas_historico (conversa_id, ordem, acao, por, motivo, mensagens, em)
SELECT :id, coalesce(max(ordem), 0) + 1, :acao, :por, :motivo, :mensagens, :now
FROM conversas_historico WHERE conversa_id = :id;

-- write take: assign the open conversation to a person, if Julia handles it, or if it needs a person and none has taken it over
UPDATE conversations SET controlled_by = 'human', status = 'active', responsavel = :por, updated_at = :now
WHERE id = :id AND status IN ('active', 'paused', 'escalated') AND (controlled_by = 'ai' OR responsavel IS NULL);

-- write let_go: make the open conversation wait for another person, if this person handles it
UPDATE conversations SET status = 'escalated', responsavel = NULL, updated_at = :now
WHERE id = :id AND status IN ('active', 'paused', 'escalated') AND controlled_by = 'human' AND responsavel = :por;

-- write give_back: hand the open conversation back to Julia, if a person handles it or it needs one
UPDATE conversations SET controlled_by = 'ai', status = 'active', responsavel = NULL, updated_at = :now
WHERE id = :id AND status IN ('active', 'paused', 'escalated') AND controlled_by = 'human';

-- write finish: end the conversation, if it is open
UPDATE conversations SET controlled_by = 'ai', status = 'completed', encerrada_em = :now, updated_at = :now
WHERE id = :id AND status IN ('active', 'paused', 'escalated');

-- write escalate: record that the open conversation needs a person, if Julia handles it
UPDATE conversations SET controlled_by = 'human', status = 'escalated', responsavel = NULL, updated_at = :now
WHERE id = :id AND status IN ('active', 'paused', 'escalated') AND controlled_by = 'ai';

-- write move: change the stage of an open conversation, except the stage optout
UPDATE conversations SET stage = :para, updated_at = :now
WHERE id = :id AND status IN ('active', 'paused', 'escalated') AND stage NOT IN ('optout', CAST(:para AS text));

-- read need: the last line of the history, and the doctor's open entry of the pending list
SELECT talk.id, (SELECT max(line.ordem) FROM conversas_historico AS line WHERE line.conversa_id = talk.id) AS ordem,
       pending.id AS pendencia_id, pending.motivo
FROM conversations AS talk LEFT JOIN pendencias AS pending ON pending.cliente_id = talk.cliente_id AND pending.resolvida_em IS NULL
WHERE talk.id = :id ORDER BY pending.created_at LIMIT 1;

-- read led: open conversations that a person handles, and those that need one
SELECT count(responsavel) AS com_pessoa, count(*) - count(responsavel) AS sem_responsavel FROM conversations
WHERE controlled_by = 'human' AND status IN ('active', 'paused', 'escalated');

-- write advance: change the stage of an open conversation that has the expected stage
UPDATE conversations SET stage = :para, updated_at = :now
WHERE id = :id AND status IN ('active', 'paused', 'escalated') AND stage = :de;

-- write pause: pause the follow-ups of an open conversation
UPDATE conversations SET pausado_ate = :ate, updated_at = :now
WHERE id = :id AND status IN ('active', 'paused', 'escalated');

-- write resume: end the pause of an open conversation
UPDATE conversations SET pausado_ate = NULL, updated_at = :now,
    stage = CASE WHEN stage = 'nao_respondeu' THEN 'recontato' ELSE stage END
WHERE id = :id AND status IN ('active', 'paused', 'escalated');

-- write end_pauses: end expired pauses of open conversations whose doctors did not answer, the earliest first
UPDATE conversations SET pausado_ate = NULL, stage = 'recontato', updated_at = :now
WHERE id IN (SELECT own.id FROM conversations AS own WHERE own.stage = 'nao_respondeu' AND own.pausado_ate <= :now
             AND own.status IN ('active', 'paused', 'escalated') ORDER BY own.pausado_ate, own.id LIMIT :limite)
  AND stage = 'nao_respondeu' AND pausado_ate <= :now
RETURNING id, cliente_id;

-- read unclaimed: open conversations that need a person and have none
SELECT count(*) AS items, min(updated_at) AS "desde [TIMESTAMPTZ]" FROM conversations
WHERE controlled_by = 'human' AND responsavel IS NULL AND status IN ('active', 'paused', 'escalated');
