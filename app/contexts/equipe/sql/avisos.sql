-- read needed: the notice, if the message is unanswered or the conversation needs a person, and no person handles it; a notice
-- about the briefing is always needed
SELECT notice.id FROM avisos_equipe AS notice
LEFT JOIN pendencias AS pending ON pending.id = notice.pendencia_id
LEFT JOIN conversations AS talk ON talk.id = notice.conversa_id
WHERE notice.id = :id AND talk.responsavel IS NULL
  AND (pending.id IS NOT NULL AND pending.resolvida_em IS NULL
       OR notice.motivo = 'briefing' OR talk.controlled_by = 'human' AND talk.status IN ('active', 'paused', 'escalated'));

-- write begin: record that the request starts, unless an earlier request has no result
UPDATE avisos_equipe SET tentado_em = :now WHERE id = :id AND tentado_em IS NULL;

-- write withdraw: record that the request has a result
UPDATE avisos_equipe SET tentado_em = NULL WHERE id = :id;

-- read unsent: notices that failed recently, or that wait too long
SELECT count(*) AS items, min(created_at) AS "desde [TIMESTAMPTZ]" FROM avisos_equipe
WHERE status = 'erro' AND finished_at >= :depois OR status IN ('pendente', 'enviando') AND created_at <= :atrasado;
