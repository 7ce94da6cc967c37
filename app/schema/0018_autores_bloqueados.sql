-- Whoever only posts noise is not read any more, until somebody lifts it.
ALTER TABLE contatos_grupo ADD COLUMN bloqueado_em TIMESTAMPTZ;
ALTER TABLE contatos_grupo ADD COLUMN bloqueado_por TEXT;
CREATE INDEX vagas_grupo_waiting_of_author ON vagas_grupo (contato_responsavel_id) WHERE status = 'aguardando_revisao';
