-- Whoever posts offers in groups may be asked what they lack. He is written to as everybody is, so he has a row among the people; he is
-- no doctor, and no campaign is for him.
ALTER TABLE clientes ADD COLUMN tipo TEXT NOT NULL DEFAULT 'medico' CHECK (tipo IN ('medico', 'divulgador'));
-- The message that asked about a vaga. dm_recovery_status: perguntada, sem_telefone, recusada (he is blocked or asked to be left
-- alone) or falhou (his number cannot be one).
ALTER TABLE vagas_grupo ADD COLUMN dm_recovery_mensagem_id UUID REFERENCES fila_mensagens (id);
CREATE INDEX vagas_grupo_to_ask ON vagas_grupo (created_at) WHERE status = 'aguardando_revisao' AND dm_recovery_status IS NULL;
CREATE INDEX vagas_grupo_asked ON vagas_grupo (dm_recovery_mensagem_id) WHERE dm_recovery_mensagem_id IS NOT NULL;
