-- read known: what a model said of it, or that somebody asks
SELECT resposta, pedida_em FROM leituras_modelo WHERE chave = :chave;

-- write ask: it is ours to ask; nobody else does for a while
INSERT INTO leituras_modelo (chave, uso, modelo, pedida_em) VALUES (:chave, :uso, :modelo, :now)
ON CONFLICT (chave) DO UPDATE SET pedida_em = excluded.pedida_em
WHERE leituras_modelo.resposta IS NULL AND leituras_modelo.pedida_em <= :before;

-- write answered: for everybody who asks the same
INSERT INTO leituras_modelo (chave, uso, modelo, pedida_em, respondida_em, resposta, tokens_input, tokens_output, custo_usd)
VALUES (:chave, :uso, :modelo, :now, :now, :resposta, :entrada, :saida, :custo)
ON CONFLICT (chave) DO UPDATE
SET resposta = excluded.resposta, respondida_em = excluded.respondida_em,
    tokens_input = leituras_modelo.tokens_input + excluded.tokens_input,
    tokens_output = leituras_modelo.tokens_output + excluded.tokens_output,
    custo_usd = leituras_modelo.custo_usd + excluded.custo_usd;

-- write unanswered: anybody may ask again
DELETE FROM leituras_modelo WHERE chave = :chave AND resposta IS NULL;

-- read spent: on what was answered in a stretch of time
SELECT count(*) AS perguntas, coalesce(sum(custo_usd), 0) AS custo FROM leituras_modelo
WHERE respondida_em >= :since AND respondida_em < :until AND (:uso_any OR uso = :uso);
