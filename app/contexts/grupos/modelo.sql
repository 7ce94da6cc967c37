-- read known: what a model said of it, or that somebody asks
SELECT resposta, pedida_em FROM leituras_modelo WHERE chave = :chave;

-- write ask: it is ours to ask; nobody else does for a while
INSERT INTO leituras_modelo (chave, modelo, pedida_em) VALUES (:chave, :modelo, :now)
ON CONFLICT (chave) DO UPDATE SET pedida_em = excluded.pedida_em
WHERE leituras_modelo.resposta IS NULL AND leituras_modelo.pedida_em <= :before;

-- write answered: for everybody who asks the same
UPDATE leituras_modelo
SET resposta = :resposta, respondida_em = :now, tokens_input = tokens_input + :entrada, tokens_output = tokens_output + :saida,
    custo_usd = custo_usd + :custo
WHERE chave = :chave;

-- write unanswered: anybody may ask again
DELETE FROM leituras_modelo WHERE chave = :chave AND resposta IS NULL;

-- read spent: on what was answered in a stretch of time
SELECT count(*) AS perguntas, coalesce(sum(custo_usd), 0) AS custo FROM leituras_modelo
WHERE respondida_em >= :since AND respondida_em < :until;
