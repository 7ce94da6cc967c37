-- read offers: offers of an author in a group that were imported or are in review, newest message first
SELECT principal.id AS "id [UUID]", principal.hospital_id AS "hospital_id [UUID]", principal.especialidade_id AS "especialidade_id [UUID]",
       principal.data AS "data [DATE]", principal.periodo_id,
       principal.valor, mensagem.message_id AS citavel
FROM vagas_grupo_fontes AS fonte JOIN mensagens_grupo AS mensagem ON mensagem.id = fonte.mensagem_id
JOIN vagas_grupo AS principal ON principal.id = fonte.vaga_grupo_id AND principal.contato_responsavel_id = fonte.contato_id
LEFT JOIN vagas AS vacancy ON vacancy.vaga_grupo_id = principal.id AND vacancy.deleted_at IS NULL
WHERE fonte.grupo_id = :grupo AND fonte.contato_id = :autor AND fonte.mensagem_id <> :mensagem
  AND mensagem.timestamp_msg <= :em AND mensagem.timestamp_msg > :since
  AND (principal.status = 'aguardando_revisao'
       OR vacancy.status IN ('aberta', 'anunciada', 'reservada', 'aguardando_confirmacao', 'pendente_confirmacao', 'confirmada'))
ORDER BY mensagem.timestamp_msg DESC, principal.ordinal, principal.id LIMIT :limite;

-- write add_repeat: insert a duplicate of the author's own vacancy with another price
INSERT INTO vagas_grupo (id, mensagem_id, ordinal, grupo_origem_id, contato_responsavel_id, hospital_raw, especialidade_raw, periodo_raw,
                         cidade, estado, data, dia_semana, valor, valor_tipo, trechos, hospital_id, especialidade_id, periodo_id,
                         hospital_match_score, especialidade_match_score, hash_dedup, eh_duplicada, duplicada_de, status, motivo_status,
                         created_at, updated_at)
SELECT :id, :mensagem_id, :ordinal, :grupo_id, :contato_id, hospital_raw, especialidade_raw, periodo_raw, cidade, estado, data, dia_semana,
       :valor, 'fixo', :trechos, hospital_id, especialidade_id, periodo_id, hospital_match_score, especialidade_match_score, hash_dedup, TRUE,
       id, 'duplicada', 'duplicada', :now, :now
FROM vagas_grupo WHERE id = :principal
ON CONFLICT DO NOTHING;
