-- read owned: one row if the database has doctors or campaigns that do not come from a demonstration
SELECT 1 AS one FROM clientes WHERE NOT EXISTS (SELECT 1 FROM clientes AS shown WHERE shown.telefone = :first AND shown.sobrenome = 'Fictícia 00')
UNION ALL
SELECT 1 AS one FROM campanhas WHERE NOT EXISTS (SELECT 1 FROM clientes AS shown WHERE shown.telefone = :first AND shown.sobrenome = 'Fictícia 00')
LIMIT 1;
