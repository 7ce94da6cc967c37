-- read blocked: blocked authors, latest block first
SELECT id, nome, empresa, bloqueado_em, bloqueado_por FROM contatos_grupo WHERE bloqueado_em IS NOT NULL
ORDER BY bloqueado_em DESC, id LIMIT :limite OFFSET :pular;

-- read author: author of a vacancy
SELECT contato.id, contato.telefone FROM vagas_grupo AS vaga LEFT JOIN contatos_grupo AS contato ON contato.id = vaga.contato_responsavel_id
WHERE vaga.id = :vaga;

-- read known: a contact by its id
SELECT id, telefone FROM contatos_grupo WHERE id = :id;

-- write block: block a contact
UPDATE contatos_grupo SET bloqueado_em = :now, bloqueado_por = :por WHERE id = :id AND bloqueado_em IS NULL;

-- write lift: lift the block of a contact
UPDATE contatos_grupo SET bloqueado_em = NULL, bloqueado_por = NULL WHERE id = :id AND bloqueado_em IS NOT NULL;

-- write reject_waiting: reject the vacancies of an author that are in review
UPDATE vagas_grupo SET status = 'rejeitada', motivo_status = 'autor_bloqueado', revisada_por = :por, revisada_em = :now, updated_at = :now
WHERE contato_responsavel_id = :id AND status = 'aguardando_revisao';
