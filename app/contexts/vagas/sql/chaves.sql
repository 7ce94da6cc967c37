-- write free: delete the key of an extracted vacancy
DELETE FROM vagas_grupo_chaves WHERE hash_dedup = :hash AND vaga_grupo_id = :id;

-- write move_key: move a key to another extracted vacancy
UPDATE vagas_grupo_chaves SET vaga_grupo_id = :id, desde = :now WHERE hash_dedup = :hash AND vaga_grupo_id = :former;

-- write become_duplicate: make an undecided extracted vacancy a duplicate of the approved one
UPDATE vagas_grupo SET status = 'duplicada', eh_duplicada = TRUE, duplicada_de = :principal, motivo_status = 'duplicada', updated_at = :now
WHERE id = :id AND status IN ('nova', 'normalizada', 'aguardando_revisao');

-- read heir: the first duplicate of a rejected vacancy by another author; on request only with another text
SELECT outra.id, outra.hash_dedup
FROM vagas_grupo AS refused JOIN vagas_grupo_fontes AS fonte ON fonte.vaga_grupo_id = refused.id
JOIN vagas_grupo AS outra ON outra.mensagem_id = fonte.mensagem_id AND outra.duplicada_de = refused.id
JOIN mensagens_grupo AS mensagem ON mensagem.id = outra.mensagem_id
JOIN mensagens_grupo AS primeira ON primeira.id = refused.mensagem_id
LEFT JOIN contatos_grupo AS contato ON contato.id = outra.contato_responsavel_id
WHERE refused.id = :id AND outra.status = 'duplicada' AND contato.bloqueado_em IS NULL
  AND outra.contato_responsavel_id IS DISTINCT FROM refused.contato_responsavel_id
  AND (:mesmo_texto OR mensagem.texto <> primeira.texto)
ORDER BY fonte.ordem, outra.ordinal LIMIT 1;

-- write send_to_review: send a duplicate to review as a separate vacancy
UPDATE vagas_grupo
SET status = 'aguardando_revisao', eh_duplicada = FALSE, duplicada_de = NULL, motivo_status = 'outra_recusada', updated_at = :now
WHERE id = :id AND status = 'duplicada';

-- write repoint: make the other duplicates point to the one that replaces the rejected vacancy
UPDATE vagas_grupo SET duplicada_de = :herdeira, updated_at = :now
WHERE duplicada_de = :id AND id <> :herdeira AND mensagem_id IN (SELECT mensagem_id FROM vagas_grupo_fontes WHERE vaga_grupo_id = :id);

-- write copy_sources: copy sources to another extracted vacancy; without :todas, those of the first author are not
-- copied
INSERT INTO vagas_grupo_fontes (vaga_grupo_id, mensagem_id, grupo_id, contato_id, ordem, texto_original, valor_informado, contato_informado,
                                created_at)
SELECT para.id, fonte.mensagem_id, fonte.grupo_id, fonte.contato_id,
       row_number() OVER (ORDER BY fonte.ordem) + (SELECT count(*) FROM vagas_grupo_fontes AS own WHERE own.vaga_grupo_id = para.id),
       fonte.texto_original, fonte.valor_informado, fonte.contato_informado, fonte.created_at
FROM vagas_grupo_fontes AS fonte JOIN vagas_grupo AS de ON de.id = fonte.vaga_grupo_id JOIN vagas_grupo AS para ON para.id = :para
WHERE fonte.vaga_grupo_id = :de
  AND (:todas OR fonte.contato_id IS DISTINCT FROM de.contato_responsavel_id)
ON CONFLICT DO NOTHING;

-- read refused: vacancies of an author that were rejected at :now
SELECT id, hash_dedup FROM vagas_grupo WHERE contato_responsavel_id = :autor AND status = 'rejeitada' AND revisada_em = :now ORDER BY id;
