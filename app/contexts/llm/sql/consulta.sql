-- read known: the stored answer, or the start time of a query in progress
SELECT resposta, pedida_em FROM leituras_modelo WHERE chave = :chave;

-- write ask: reserve the query; other processes wait until the reservation expires
INSERT INTO leituras_modelo (chave, uso, modelo, pedida_em) VALUES (:chave, :uso, :modelo, :now)
ON CONFLICT (chave) DO UPDATE SET pedida_em = excluded.pedida_em
WHERE leituras_modelo.resposta IS NULL AND leituras_modelo.pedida_em <= :before;

-- write answered: store the answer for all callers with the same key
INSERT INTO leituras_modelo (chave, uso, modelo, pedida_em, respondida_em, resposta, tokens_input, tokens_output, custo_usd)
VALUES (:chave, :uso, :modelo, :now, :now, :resposta, :entrada, :saida, :custo)
ON CONFLICT (chave) DO UPDATE
SET resposta = excluded.resposta, respondida_em = excluded.respondida_em,
    tokens_input = leituras_modelo.tokens_input + excluded.tokens_input,
    tokens_output = leituras_modelo.tokens_output + excluded.tokens_output,
    custo_usd = leituras_modelo.custo_usd + excluded.custo_usd;

-- write unanswered: release the reservation
DELETE FROM leituras_modelo WHERE chave = :chave AND resposta IS NULL;

-- read spent: number and cost of the queries answered in a period
SELECT count(*) AS perguntas, coalesce(sum(custo_usd), 0) AS custo FROM leituras_modelo
WHERE respondida_em >= :since AND respondida_em < :until AND (:uso_any OR uso = :uso);
