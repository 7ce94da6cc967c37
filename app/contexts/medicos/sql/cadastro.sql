-- write add: register a doctor; a registered number is unchanged
INSERT INTO clientes (id, telefone, primeiro_nome, sobrenome, crm, especialidade, cidade, estado, created_at)
VALUES (:id, :telefone, :primeiro_nome, :sobrenome, :crm, :especialidade, :cidade, :estado, :now)
ON CONFLICT DO NOTHING;
