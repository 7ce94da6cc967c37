-- write mensagens_grupo: delete old processed messages that have no vacancy
DELETE FROM mensagens_grupo WHERE id IN (
    SELECT mensagem.id FROM mensagens_grupo AS mensagem
    WHERE mensagem.created_at < :before AND mensagem.status <> 'pendente' AND coalesce(mensagem.qtd_vagas_extraidas, 0) = 0
      AND NOT EXISTS (SELECT 1 FROM fila_processamento_grupos AS fila WHERE fila.mensagem_id = mensagem.id)
      AND NOT EXISTS (SELECT 1 FROM vagas_grupo AS vaga WHERE vaga.mensagem_id = mensagem.id)
      AND NOT EXISTS (SELECT 1 FROM vagas_grupo_fontes AS fonte WHERE fonte.mensagem_id = mensagem.id)
    ORDER BY mensagem.created_at LIMIT :limit);

-- write leituras_modelo: delete old answers of the language model
DELETE FROM leituras_modelo WHERE chave IN (
    SELECT chave FROM leituras_modelo WHERE respondida_em < :before ORDER BY respondida_em LIMIT :limit);
