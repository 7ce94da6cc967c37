-- read messages: messages of groups with their result, newest first
SELECT mensagem.id, mensagem.status, mensagem.motivo_descarte, mensagem.score_heuristica, mensagem.limiar_heuristica, mensagem.heuristica_ms,
       mensagem.keywords_encontradas, mensagem.categoria, mensagem.motivo_classificacao, mensagem.confianca_classificacao,
       mensagem.limiar_classificacao, mensagem.classificacao_ms, mensagem.extracao_ms, mensagem.qtd_vagas_extraidas,
       mensagem.timestamp_msg, mensagem.processado_em, mensagem.created_at, mensagem.texto, grupo.nome AS grupo_nome, grupo.jid AS grupo_jid
FROM mensagens_grupo AS mensagem JOIN grupos_whatsapp AS grupo ON grupo.id = mensagem.grupo_id
WHERE (NOT :so_descartadas OR mensagem.status IN ('heuristica_rejeitou', 'classificada_nao_oferta', 'descartada', 'ignorada_midia',
                                                  'ignorada_curta'))
  AND (:qualquer_motivo OR coalesce(mensagem.motivo_descarte, mensagem.status) = :motivo)
ORDER BY mensagem.created_at DESC, mensagem.id DESC LIMIT :limite OFFSET :pular;

-- read reasons: number of messages discarded since an instant, by reason
SELECT coalesce(motivo_descarte, status) AS motivo, count(*) AS items FROM mensagens_grupo
WHERE created_at >= :since AND status IN ('heuristica_rejeitou', 'classificada_nao_oferta', 'descartada', 'ignorada_midia', 'ignorada_curta')
GROUP BY coalesce(motivo_descarte, status) ORDER BY count(*) DESC, coalesce(motivo_descarte, status);

-- read today: counts of messages since an instant, and of notices in review
SELECT count(*) AS recebidas,
       coalesce(sum(CASE WHEN status IN ('heuristica_rejeitou', 'classificada_nao_oferta', 'descartada', 'ignorada_midia', 'ignorada_curta')
                    THEN 1 ELSE 0 END), 0) AS descartadas,
       (SELECT count(*) FROM fechamentos_grupo WHERE status = 'aguardando_revisao') AS avisos
FROM mensagens_grupo WHERE created_at >= :since;
