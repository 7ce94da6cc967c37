-- read requests: all requests, which are proof and must survive
SELECT id, tipo, digests, alvo, por, motivo, contagens, restam, created_at, updated_at, concluido_em FROM lgpd_pedidos;

-- read numbers: every number that a table has
SELECT telefone FROM clientes UNION SELECT telefone FROM external_contacts UNION SELECT telefone FROM contatos_lid
UNION SELECT telefone FROM contatos_grupo WHERE telefone IS NOT NULL UNION SELECT telefone FROM appointments WHERE telefone IS NOT NULL
UNION SELECT telefone FROM interacoes WHERE telefone IS NOT NULL UNION SELECT telefone_destino FROM fila_mensagens;

-- write reopen: open an erasure for a person whom the backup brought back
INSERT INTO lgpd_pedidos (id, tipo, digests, alvo, por, motivo, contagens, restam, created_at, updated_at)
VALUES (:id, 'apagar', :digests, :alvo, :por, :motivo, :empty, :empty, :now, :now);

-- write refuse_number: record that a number gets no messages, by its keyed digest
INSERT INTO optouts_do_diario (digest, created_at) VALUES (:digest, :now) ON CONFLICT DO NOTHING;
