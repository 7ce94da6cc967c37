-- read of_central: the conversation that a conversation of the help desk mirrors
SELECT talk.id, talk.cliente_id, talk.status, talk.controlled_by, talk.responsavel, talk.chatwoot_visto_em, person.telefone
FROM conversations AS talk JOIN clientes AS person ON person.id = talk.cliente_id
WHERE talk.chatwoot_conversation_id = :central_id;

-- write seen: store the time and the state of the last change in the help desk, unless a later one is stored
UPDATE conversations
SET chatwoot_visto_em = :em, chatwoot_estado = CASE WHEN :resolvida THEN 'resolved' ELSE chatwoot_estado END
WHERE id = :id AND (chatwoot_visto_em IS NULL OR chatwoot_visto_em <= :em);

-- write unlink: remove the link from the ended conversation to its conversation in the help desk
UPDATE conversations SET chatwoot_conversation_id = NULL WHERE id = :id;

-- write relink: link the doctor's open conversation to a conversation of the help desk
UPDATE conversations SET chatwoot_conversation_id = :central_id, chatwoot_desde = :desde, chatwoot_estado = 'open' WHERE id = :id;
