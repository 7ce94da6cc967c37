-- read find: a known person or chat by key, user name or telephone
SELECT chave, acesso, nome, username, telefone, is_bot FROM telegram_entidades
WHERE conta_id = :conta_id AND (chave = :chave OR username = :username OR telefone = :telefone)
ORDER BY visto_em DESC LIMIT 1;

-- write keep: store a person or chat as it is now; a missing number or access number keeps the known one
INSERT INTO telegram_entidades (conta_id, chave, quem, acesso, nome, username, telefone, is_bot, visto_em)
VALUES (:conta_id, :chave, :quem, :acesso, :nome, :username, :telefone, :is_bot, :now)
ON CONFLICT (conta_id, chave) DO UPDATE
SET acesso = coalesce(excluded.acesso, telegram_entidades.acesso), nome = coalesce(excluded.nome, telegram_entidades.nome),
    username = excluded.username, telefone = coalesce(excluded.telefone, telegram_entidades.telefone), visto_em = excluded.visto_em;

-- write forget: delete an entity that is no longer valid
DELETE FROM telegram_entidades WHERE conta_id = :conta_id AND chave = :chave;

-- read of_person: the key of a person with this number, by the link between address and number
SELECT known.chave FROM contatos_lid AS link JOIN telegram_entidades AS known ON known.quem = link.lid
WHERE link.telefone IN (:telefone, :other_form) AND known.conta_id = :conta_id ORDER BY known.visto_em DESC LIMIT 1;

-- read account_of_person: the account that knows a person, most recent contact first; otherwise the least busy account
SELECT account.id,
       (SELECT max(known.visto_em) FROM contatos_lid AS link JOIN telegram_entidades AS known ON known.quem = link.lid
        WHERE link.telefone IN (:telefone, :other_form) AND known.conta_id = account.id) AS "visto_em [TIMESTAMPTZ]",
       (SELECT count(*) FROM fila_mensagens AS waiting WHERE waiting.conta_id = account.id AND waiting.status = 'pendente') AS na_fila
FROM telegram_contas AS account WHERE account.estado = 'ativa' ORDER BY account.id;
