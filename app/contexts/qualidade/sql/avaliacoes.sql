-- read pending: ended or quiet conversations without an evaluation; those whose answers could not be read last, then oldest first
SELECT talk.id, talk.stage, doctor.primeiro_nome, doctor.sobrenome, coalesce(unread.vezes, 0) AS ilegiveis
FROM conversations AS talk JOIN clientes AS doctor ON doctor.id = talk.cliente_id
LEFT JOIN avaliacoes_ilegiveis AS unread ON unread.conversa_id = talk.id
WHERE (talk.status IN ('completed', 'archived') OR talk.ultima_mensagem_em < :quiet_since) AND doctor.deleted_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM avaliacoes_qualidade AS done WHERE done.conversa_id = talk.id)
  AND EXISTS (SELECT 1 FROM interacoes AS said WHERE said.conversation_id = talk.id AND said.tipo = 'entrada' AND said.conteudo <> '[removido]')
ORDER BY coalesce(unread.vezes, 0), coalesce(talk.ultima_mensagem_em, talk.updated_at), talk.id LIMIT :limite;

-- read remaining: the number of conversations of the list above
SELECT count(*) AS items FROM conversations AS talk JOIN clientes AS doctor ON doctor.id = talk.cliente_id
WHERE (talk.status IN ('completed', 'archived') OR talk.ultima_mensagem_em < :quiet_since) AND doctor.deleted_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM avaliacoes_qualidade AS done WHERE done.conversa_id = talk.id)
  AND EXISTS (SELECT 1 FROM interacoes AS said WHERE said.conversation_id = talk.id AND said.tipo = 'entrada' AND said.conteudo <> '[removido]');

-- read said: the last messages of a conversation, newest first
SELECT tipo, autor_tipo, conteudo, classe FROM interacoes
WHERE conversation_id = :id ORDER BY created_at DESC, id DESC LIMIT :limite;

-- write add: store the evaluation of a conversation; a second one is not stored
INSERT INTO avaliacoes_qualidade (id, conversa_id, avaliador, modelo, naturalidade, persona, objetivo, satisfacao, score_geral, positivos,
                                  negativos, sugestoes, mensagens, prompt_versao, created_at)
VALUES (:id, :conversa_id, :avaliador, :modelo, :naturalidade, :persona, :objetivo, :satisfacao, :geral, :positivos, :negativos, :sugestoes,
        :mensagens, :prompt_versao, :now)
ON CONFLICT (conversa_id) DO NOTHING;

-- write unread: count an answer of the model that could not be read
INSERT INTO avaliacoes_ilegiveis (conversa_id, vezes, em) VALUES (:conversa_id, 1, :now)
ON CONFLICT (conversa_id) DO UPDATE SET vezes = avaliacoes_ilegiveis.vezes + 1, em = excluded.em;

-- read listed: evaluations, newest first
SELECT id, conversa_id, avaliador, modelo, naturalidade, persona, objetivo, satisfacao, score_geral, positivos, negativos, sugestoes,
       mensagens, prompt_versao, nota_corrigida, correcao, corrigida_por, corrigida_em, created_at
FROM avaliacoes_qualidade
WHERE (CAST(:avaliador AS text) IS NULL OR avaliador = :avaliador) AND coalesce(nota_corrigida, score_geral) <= :ate
ORDER BY created_at DESC, id DESC LIMIT :limite OFFSET :pular;

-- read one: one evaluation, with the doctor's names, which a correction must not contain
SELECT done.id, done.conversa_id, done.avaliador, done.modelo, done.naturalidade, done.persona, done.objetivo, done.satisfacao,
       done.score_geral, done.positivos, done.negativos, done.sugestoes, done.mensagens, done.prompt_versao, done.nota_corrigida,
       done.correcao, done.corrigida_por, done.corrigida_em, done.created_at, doctor.primeiro_nome, doctor.sobrenome
FROM avaliacoes_qualidade AS done JOIN conversations AS talk ON talk.id = done.conversa_id
JOIN clientes AS doctor ON doctor.id = talk.cliente_id WHERE done.id = :id;

-- write correct: store the score of a person, if the stored correction is the expected one
UPDATE avaliacoes_qualidade SET nota_corrigida = :nota, correcao = :correcao, corrigida_por = :por, corrigida_em = :now
WHERE id = :id AND (corrigida_em = :antes OR corrigida_em IS NULL AND CAST(:antes AS timestamptz) IS NULL);
