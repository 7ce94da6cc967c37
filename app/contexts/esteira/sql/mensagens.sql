-- read messages on sqlite: columns of messages that the reading stages use
SELECT mensagem.id, mensagem.texto, mensagem.timestamp_msg, mensagem.grupo_id, mensagem.contato_id, mensagem.citada, mensagem.created_at,
       mensagem.score_heuristica, mensagem.limiar_heuristica, grupo.nome AS grupo, grupo.regiao
FROM mensagens_grupo AS mensagem JOIN grupos_whatsapp AS grupo ON grupo.id = mensagem.grupo_id
WHERE mensagem.id IN (SELECT value FROM json_each(:ids));

-- read messages on postgres: columns of messages that the reading stages use
SELECT mensagem.id, mensagem.texto, mensagem.timestamp_msg, mensagem.grupo_id, mensagem.contato_id, mensagem.citada, mensagem.created_at,
       mensagem.score_heuristica, mensagem.limiar_heuristica, grupo.nome AS grupo, grupo.regiao
FROM mensagens_grupo AS mensagem JOIN grupos_whatsapp AS grupo ON grupo.id = mensagem.grupo_id
WHERE mensagem.id IN (SELECT jsonb_array_elements_text(:ids)::uuid);

-- write scored: store the result of the heuristic
UPDATE mensagens_grupo
SET status = :status, passou_heuristica = :passou, score_heuristica = :score, keywords_encontradas = :sinais, motivo_descarte = :motivo,
    limiar_heuristica = :limiar, heuristica_ms = :ms, processado_em = :processado_em
WHERE id = :id;

-- write classified: store the result of the classification
UPDATE mensagens_grupo
SET status = :status, eh_oferta = :eh_oferta, confianca_classificacao = :confianca, categoria = :categoria,
    motivo_classificacao = :porque, motivo_descarte = :motivo, limiar_classificacao = :limiar, classificacao_ms = :ms,
    processado_em = :processado_em
WHERE id = :id;

-- write extracted: store the result of the extraction
UPDATE mensagens_grupo
SET status = :status, eh_oferta = :eh_oferta, confianca_classificacao = :confianca, categoria = :categoria,
    motivo_classificacao = :porque, motivo_descarte = :motivo, qtd_vagas_extraidas = :vagas, vagas_a_caminho = :vagas,
    extracao_ms = :ms, processado_em = :processado_em
WHERE id = :id;

-- write offered: count an offer posted in a group
UPDATE grupos_whatsapp SET total_ofertas = total_ofertas + 1 WHERE id = :id;

-- write posted: count the vacancies posted by a contact
UPDATE contatos_grupo SET total_vagas_postadas = total_vagas_postadas + :vagas WHERE id = :id;

-- write add_vaga: insert a vacancy read from a message; a repetition inserts nothing
INSERT INTO vagas_grupo (id, mensagem_id, ordinal, grupo_origem_id, contato_responsavel_id, hospital_raw, especialidade_raw, periodo_raw,
                         forma_pagamento_raw, cidade, estado, data, dia_semana, hora_inicio, hora_fim, valor, valor_tipo, contato_nome,
                         contato_whatsapp, trechos, confianca_geral, confianca_hospital, confianca_especialidade, confianca_data,
                         confianca_valor, created_at, updated_at)
VALUES (:id, :mensagem_id, :ordinal, :grupo_id, :contato_id, :hospital, :especialidade, :periodo, :forma_pagamento, :cidade, :uf, :data,
        :dia_semana, :hora_inicio, :hora_fim, :valor, :valor_tipo, :contato_nome, :contato_whatsapp, :trechos, :confianca,
        :confianca_hospital, :confianca_especialidade, :confianca_data, :confianca_valor, :now, :now)
ON CONFLICT DO NOTHING;

-- read known: the vacancies that an earlier reading found in a message
SELECT ordinal, hospital_raw, especialidade_raw, data, periodo_raw FROM vagas_grupo WHERE mensagem_id = :id;

-- write read_again: count the vacancies that a further reading of a message found
UPDATE mensagens_grupo
SET status = 'extraida', eh_oferta = TRUE, motivo_descarte = NULL, qtd_vagas_extraidas = coalesce(qtd_vagas_extraidas, 0) + :vagas,
    vagas_a_caminho = vagas_a_caminho + :vagas
WHERE id = :id;
