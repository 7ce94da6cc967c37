-- write add_group: insert an unknown group
INSERT INTO grupos_whatsapp (id, jid, created_at) VALUES (:id, :jid, :now) ON CONFLICT DO NOTHING;

-- write add_canary_group: insert the canary's group
INSERT INTO grupos_whatsapp (id, jid, nome, tipo, created_at) VALUES (:id, :jid, 'Canário', 'canario', :now) ON CONFLICT DO NOTHING;

-- read group: a group by its address
SELECT id, ativo, monitorar_ofertas FROM grupos_whatsapp WHERE jid = :jid;

-- write upsert_contact: upsert a contact; a missing new value keeps the stored one
INSERT INTO contatos_grupo (id, jid, telefone, nome, empresa, created_at) VALUES (:id, :jid, :telefone, :nome, :empresa, :now)
ON CONFLICT (jid) DO UPDATE
SET telefone = coalesce(contatos_grupo.telefone, excluded.telefone), nome = coalesce(excluded.nome, contatos_grupo.nome),
    empresa = coalesce(excluded.empresa, contatos_grupo.empresa);

-- read contact: a contact by its address
SELECT id, telefone FROM contatos_grupo WHERE jid = :jid;

-- write add_message: insert a message once; the first chip that delivers it wins
INSERT INTO mensagens_grupo (id, grupo_id, contato_id, message_id, sender_jid, sender_nome, texto, tipo_midia, tem_midia,
                             timestamp_msg, is_forwarded, citada, instance_name, status, motivo_descarte, created_at)
VALUES (:id, :grupo_id, :contato_id, :message_id, :jid, :nome, :texto, :midia, :tem_midia, :em, :encaminhada, :citada, :instance, :status,
        :motivo, :now)
ON CONFLICT DO NOTHING;

-- write count_on_group: count a message of a group; a late message does not become the latest
UPDATE grupos_whatsapp
SET total_mensagens = total_mensagens + 1, ultima_mensagem_em = CASE WHEN ultima_mensagem_em > :em THEN ultima_mensagem_em ELSE :em END
WHERE id = :id;

-- write count_on_contact: count a message of a contact
UPDATE contatos_grupo SET total_mensagens = total_mensagens + 1 WHERE id = :id;
