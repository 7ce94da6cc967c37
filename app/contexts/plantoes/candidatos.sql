-- read words: the specialities as spelt in the doctors' rows
SELECT DISTINCT especialidade FROM clientes
WHERE deleted_at IS NULL AND tipo = 'medico' AND especialidade IS NOT NULL;

-- read vacancy: the facts of a vacancy that decide which doctors fit
SELECT vaga.id, vaga.hospital_id, vaga.especialidade_id, especialidade.nome AS especialidade
FROM vagas AS vaga JOIN especialidades AS especialidade ON especialidade.id = vaga.especialidade_id
WHERE vaga.id = :id AND vaga.deleted_at IS NULL;

-- read consider: doctors with their score and the first reason against an offer; all who fit, or those with the given
-- ids
SELECT id, telefone, primeiro_nome, impedimento, pontos FROM (
    SELECT doctor.id, doctor.telefone, doctor.primeiro_nome,
           CASE WHEN doctor.deleted_at IS NOT NULL OR doctor.tipo <> 'medico' THEN 'cadastro_removido'
                WHEN doctor.opt_out OR doctor.opted_out OR doctor.status IN ('optout', 'opt_out')
                     OR coalesce(state.permission_state, '') = 'opted_out'
                     OR EXISTS (SELECT 1 FROM external_contacts AS other
                                WHERE other.telefone IN (doctor.telefone, doctor.telefone_chave,
                                                         CASE WHEN length(doctor.telefone_chave) = 12 AND substr(doctor.telefone_chave, 1, 2) = '55'
                                                                   AND substr(doctor.telefone_chave, 5, 1) IN ('6', '7', '8', '9')
                                                              THEN substr(doctor.telefone_chave, 1, 4) || '9' || substr(doctor.telefone_chave, 5) END)
                                AND other.permission_state = 'opted_out') THEN 'optout'
                WHEN EXISTS (SELECT 1 FROM optouts_provaveis AS doubt WHERE doubt.telefone_chave = doctor.telefone_chave AND doubt.decisao IS NULL)
                     THEN 'optout_provavel'
                WHEN doctor.status_telefone = 'invalido' THEN 'telefone_invalido'
                WHEN EXISTS (SELECT 1 FROM vagas_ofertas AS offer WHERE offer.vaga_id = :id AND offer.cliente_id = doctor.id) THEN 'ja_oferecida'
                WHEN EXISTS (SELECT 1 FROM vagas AS held JOIN vagas AS wanted ON wanted.id = :id
                             WHERE held.cliente_id = doctor.id AND held.status = 'reservada' AND held.deleted_at IS NULL
                               AND held.data = wanted.data
                               AND (held.periodo_id = wanted.periodo_id OR held.hora_inicio = wanted.hora_inicio)) THEN 'ja_tem_plantao'
                WHEN EXISTS (SELECT 1 FROM conversations AS talk WHERE talk.cliente_id = doctor.id AND talk.controlled_by = 'human'
                             AND talk.status IN ('active', 'paused', 'escalated')) THEN 'conversa_humana'
                WHEN state.permission_state = 'cooling_off' AND (state.cooling_off_until IS NULL OR state.cooling_off_until > :now) THEN 'esfriando'
                WHEN state.next_allowed_at > :now THEN 'proximo_contato'
                WHEN (SELECT count(*) FROM fila_mensagens AS sent WHERE sent.cliente_id = doctor.id AND sent.status = 'enviada'
                      AND sent.enviada_em > :week_ago AND sent.tipo NOT IN ('resposta', 'recebimento', 'retomada')) >= :contatos THEN 'limite_contatos'
                WHEN :todos AND EXISTS (SELECT 1 FROM fila_mensagens AS queued WHERE queued.cliente_id = doctor.id
                                        AND queued.status IN ('pendente', 'processando') AND queued.tipo NOT IN ('resposta', 'recebimento', 'retomada')) THEN 'na_fila'
           END AS impedimento,
           CASE WHEN EXISTS (SELECT 1 FROM vagas AS worked WHERE worked.cliente_id = doctor.id AND worked.status = 'realizada') THEN 100 ELSE 0 END
           + CASE WHEN EXISTS (SELECT 1 FROM vagas AS worked WHERE worked.cliente_id = doctor.id AND worked.status = 'realizada'
                               AND worked.hospital_id = :hospital_id) THEN 50 ELSE 0 END
           + 50.0 * CASE WHEN doctor.qualification_score < 0 THEN 0.0 WHEN doctor.qualification_score > 1 THEN 1.0 ELSE doctor.qualification_score END
           + CASE WHEN state.last_outbound_at IS NULL THEN 30 WHEN state.last_outbound_at > :week_ago THEN -50
                  WHEN state.last_outbound_at > :month_ago THEN 20 ELSE 0 END
           + CASE WHEN doctor.especialidade IN ({exatas}) THEN 40 WHEN doctor.especialidade IN ({parciais}) THEN 20 ELSE 0 END AS pontos
    FROM clientes AS doctor LEFT JOIN doctor_state AS state ON state.cliente_id = doctor.id
    WHERE :todos AND doctor.tipo = 'medico' AND doctor.deleted_at IS NULL
          AND (doctor.especialidade IN ({exatas}) OR doctor.especialidade IN ({parciais}))
       OR NOT :todos AND doctor.id IN ({clientes})
) AS considered
WHERE NOT :todos OR impedimento IS NULL
ORDER BY pontos DESC, id LIMIT :limite;
