-- Groups tell, too, that a vacancy is taken. citada: the message that this one answers, by the messenger's id.
ALTER TABLE mensagens_grupo ADD COLUMN citada TEXT;
CREATE INDEX vagas_grupo_fontes_of_group ON vagas_grupo_fontes (grupo_id);

-- A message that says so, and what came of it: which vacancies it closed and why these, or that a person has to say.
CREATE TABLE fechamentos_grupo (
    id           UUID PRIMARY KEY,
    mensagem_id  UUID NOT NULL REFERENCES mensagens_grupo (id),
    grupo_id     UUID NOT NULL REFERENCES grupos_whatsapp (id),
    status       TEXT NOT NULL CHECK (status IN ('fechada', 'aguardando_revisao', 'mantida')),
    -- citada: it answers the offer; mesma_vaga: it names place, day and period of one; pessoa: somebody said so.
    como         TEXT,
    motivo       TEXT,
    trecho       JSONB NOT NULL,
    fechadas     JSONB NOT NULL DEFAULT '[]',
    candidatas   JSONB NOT NULL DEFAULT '[]',
    revisada_por TEXT,
    revisada_em  TIMESTAMPTZ,
    created_at   TIMESTAMPTZ NOT NULL
);
CREATE UNIQUE INDEX fechamentos_grupo_once ON fechamentos_grupo (mensagem_id, status) WHERE revisada_em IS NULL;
CREATE INDEX fechamentos_grupo_waiting ON fechamentos_grupo (created_at) WHERE status = 'aguardando_revisao';
