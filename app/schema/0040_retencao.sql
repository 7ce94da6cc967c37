-- Rows whose personal data the retention has not removed yet, by the time from which their age counts.
CREATE INDEX interacoes_kept ON interacoes (created_at) WHERE conteudo <> '[removido]';
CREATE INDEX fila_mensagens_kept ON fila_mensagens (finalizada_em) WHERE conteudo <> '[removido]' AND finalizada_em IS NOT NULL;
CREATE INDEX mensagens_grupo_kept ON mensagens_grupo (created_at) WHERE texto <> '[removido]';
CREATE INDEX vagas_grupo_kept ON vagas_grupo (created_at)
    WHERE contato_responsavel_id IS NOT NULL OR contato_nome IS NOT NULL OR contato_whatsapp IS NOT NULL OR observacoes_raw IS NOT NULL;
CREATE INDEX appointments_by_change ON appointments (updated_at);
