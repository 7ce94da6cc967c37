-- write mensagens_grupo: remove text and author of old messages that were processed
UPDATE mensagens_grupo SET texto = '[removido]', sender_jid = NULL, sender_nome = NULL, contato_id = NULL WHERE id IN (
    SELECT mensagem.id FROM mensagens_grupo AS mensagem
    WHERE mensagem.texto <> '[removido]' AND mensagem.created_at < :before AND mensagem.status <> 'pendente'
      AND NOT EXISTS (SELECT 1 FROM fila_processamento_grupos AS fila WHERE fila.mensagem_id = mensagem.id)
    ORDER BY mensagem.created_at LIMIT :limit);

-- write vagas_grupo: remove the contact of old vacancies that are decided
UPDATE vagas_grupo SET contato_responsavel_id = NULL, contato_nome = NULL, contato_whatsapp = NULL, observacoes_raw = NULL WHERE id IN (
    SELECT id FROM vagas_grupo
    WHERE (contato_responsavel_id IS NOT NULL OR contato_nome IS NOT NULL OR contato_whatsapp IS NOT NULL OR observacoes_raw IS NOT NULL)
      AND created_at < :before AND status NOT IN ('nova', 'normalizada', 'aguardando_revisao')
    ORDER BY created_at LIMIT :limit);

-- write vagas_grupo_fontes: remove text and author of the old sources of vacancies
UPDATE vagas_grupo_fontes SET contato_id = NULL, texto_original = '[removido]', contato_informado = NULL
WHERE (vaga_grupo_id, mensagem_id) IN (
    SELECT vaga_grupo_id, mensagem_id FROM vagas_grupo_fontes
    WHERE created_at < :before AND texto_original <> '[removido]' ORDER BY created_at LIMIT :limit);

-- write vagas: remove the contact of old vacancies from groups
UPDATE vagas SET contato_nome = NULL, contato_whatsapp = NULL WHERE id IN (
    SELECT id FROM vagas WHERE created_at < :before AND (contato_nome IS NOT NULL OR contato_whatsapp IS NOT NULL)
      AND status IN ('realizada', 'cancelada', 'fechada') ORDER BY created_at LIMIT :limit);

-- write contatos_grupo: delete old authors without messages and vacancies; blocked authors stay blocked
DELETE FROM contatos_grupo WHERE id IN (
    SELECT contato.id FROM contatos_grupo AS contato
    WHERE contato.created_at < :before AND contato.bloqueado_em IS NULL
      AND NOT EXISTS (SELECT 1 FROM mensagens_grupo AS mensagem WHERE mensagem.contato_id = contato.id)
      AND NOT EXISTS (SELECT 1 FROM vagas_grupo AS vaga WHERE vaga.contato_responsavel_id = contato.id)
      AND NOT EXISTS (SELECT 1 FROM vagas_grupo_fontes AS fonte WHERE fonte.contato_id = contato.id)
    ORDER BY contato.created_at LIMIT :limit);
