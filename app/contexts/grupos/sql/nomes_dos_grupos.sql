-- read due: groups without a name or with an old one, and the chip of their latest message
SELECT grupo.id, grupo.jid, (SELECT mensagem.instance_name FROM mensagens_grupo AS mensagem WHERE mensagem.grupo_id = grupo.id
                             ORDER BY mensagem.timestamp_msg DESC LIMIT 1) AS instance
FROM grupos_whatsapp AS grupo
WHERE grupo.ativo AND grupo.tipo <> 'canario' AND (grupo.apresentado_em IS NULL OR grupo.apresentado_em < :before)
ORDER BY grupo.apresentado_em IS NOT NULL, grupo.apresentado_em, grupo.created_at LIMIT :limite;

-- write introduced: store the name and the region it implies; a region set by an operator stays
UPDATE grupos_whatsapp
SET nome = coalesce(:nome, nome), apresentado_em = :now,
    regiao = CASE WHEN regiao IS NULL OR regiao_origem = 'nome' THEN coalesce(:regiao, regiao) ELSE regiao END,
    regiao_origem = CASE WHEN (regiao IS NULL OR regiao_origem = 'nome') AND :tem_regiao THEN 'nome' ELSE regiao_origem END
WHERE id = :id;
