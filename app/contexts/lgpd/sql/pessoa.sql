-- read doctor: the number and the name of a doctor, or of an author of offers
SELECT telefone, primeiro_nome, sobrenome FROM clientes WHERE id = :id;

-- read contact: the number and the address of an author in groups
SELECT telefone, jid FROM contatos_grupo WHERE id = :id;

-- read appointment: one appointment with the identifiers of its patient
SELECT id, nome_paciente, telefone, cpf, normalization_job_id FROM appointments WHERE id = :id;

-- read hidden on sqlite: numbers and hidden addresses of a person
SELECT lid, telefone FROM contatos_lid
WHERE lid IN (SELECT value FROM json_each(:quem)) OR telefone IN (SELECT value FROM json_each(:quem));

-- read hidden on postgres: numbers and hidden addresses of a person
SELECT lid, telefone FROM contatos_lid
WHERE lid IN (SELECT jsonb_array_elements_text(:quem)) OR telefone IN (SELECT jsonb_array_elements_text(:quem));

-- read contacts on sqlite: a person's entries among the authors in groups
SELECT id, jid, telefone, nome FROM contatos_grupo
WHERE jid IN (SELECT value FROM json_each(:quem)) OR telefone IN (SELECT value FROM json_each(:quem));

-- read contacts on postgres: a person's entries among the authors in groups
SELECT id, jid, telefone, nome FROM contatos_grupo
WHERE jid IN (SELECT jsonb_array_elements_text(:quem)) OR telefone IN (SELECT jsonb_array_elements_text(:quem));

-- read doctors on sqlite: a person's rows among the doctors, removed ones included
SELECT id, primeiro_nome, sobrenome, cpf FROM clientes WHERE telefone_chave IN (SELECT value FROM json_each(:quem));

-- read doctors on postgres: a person's rows among the doctors, removed ones included
SELECT id, primeiro_nome, sobrenome, cpf FROM clientes WHERE telefone_chave IN (SELECT jsonb_array_elements_text(:quem));

-- read conversations on sqlite: conversations with these doctors
SELECT id FROM conversations WHERE cliente_id IN (SELECT value FROM json_each(:medicos));

-- read conversations on postgres: conversations with these doctors
SELECT id FROM conversations WHERE cliente_id IN (SELECT jsonb_array_elements_text(:medicos)::uuid);

-- read posted on sqlite: group messages of these authors
SELECT id FROM mensagens_grupo
WHERE contato_id IN (SELECT value FROM json_each(:contatos)) OR sender_jid IN (SELECT value FROM json_each(:quem));

-- read posted on postgres: group messages of these authors
SELECT id FROM mensagens_grupo
WHERE contato_id IN (SELECT jsonb_array_elements_text(:contatos)::uuid) OR sender_jid IN (SELECT jsonb_array_elements_text(:quem));

-- read offers on sqlite: vacancies that these authors posted in groups
SELECT id FROM vagas_grupo WHERE contato_responsavel_id IN (SELECT value FROM json_each(:contatos));

-- read offers on postgres: vacancies that these authors posted in groups
SELECT id FROM vagas_grupo WHERE contato_responsavel_id IN (SELECT jsonb_array_elements_text(:contatos)::uuid);

-- read appointments on sqlite: appointments with these numbers, documents or ids
SELECT id, nome_paciente, telefone, cpf, normalization_job_id FROM appointments
WHERE telefone IN (SELECT value FROM json_each(:quem)) OR cpf IN (SELECT value FROM json_each(:cpfs))
   OR id IN (SELECT value FROM json_each(:ids)) ORDER BY id;

-- read appointments on postgres: appointments with these numbers, documents or ids
SELECT id, nome_paciente, telefone, cpf, normalization_job_id FROM appointments
WHERE telefone IN (SELECT jsonb_array_elements_text(:quem)) OR cpf IN (SELECT jsonb_array_elements_text(:cpfs))
   OR id IN (SELECT jsonb_array_elements_text(:ids)::uuid) ORDER BY id;

-- read encrypted: one page of the appointments with an encrypted document
SELECT id, cpf FROM appointments WHERE id > :after AND cpf LIKE 'sealed:%' ORDER BY id LIMIT :limit;
