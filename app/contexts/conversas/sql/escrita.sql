-- read recipient: the doctor of a conversation, and the number
SELECT talk.cliente_id, person.telefone FROM conversations AS talk JOIN clientes AS person ON person.id = talk.cliente_id
WHERE talk.id = :id;
