-- read evaluated: recent evaluations, newest first, with the score of a person where there is one
SELECT coalesce(nota_corrigida, score_geral) AS nota, nota_corrigida, correcao, positivos, negativos, sugestoes
FROM avaliacoes_qualidade WHERE created_at > :since OR corrigida_em > :since
ORDER BY coalesce(corrigida_em, created_at) DESC, id DESC LIMIT :limite;

-- read active: the active guidance
SELECT versao, conteudo, base, por, created_at, encerrado_em FROM prompts WHERE nome = :nome AND encerrado_em IS NULL;

-- read versions: every version of the guidance, newest first
SELECT versao, conteudo, base, por, created_at, encerrado_em FROM prompts WHERE nome = :nome ORDER BY versao DESC LIMIT :limite;

-- write close: end the active version
UPDATE prompts SET encerrado_em = :now WHERE nome = :nome AND encerrado_em IS NULL;

-- write add: add a version, if the version before it is the expected one
INSERT INTO prompts (id, nome, versao, conteudo, base, por, created_at) VALUES (:id, :nome, :versao, :conteudo, :base, :por, :now)
ON CONFLICT DO NOTHING;
