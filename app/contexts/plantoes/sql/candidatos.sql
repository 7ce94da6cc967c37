-- read words: the specialities as spelt in the doctors' rows
SELECT DISTINCT especialidade FROM clientes
WHERE deleted_at IS NULL AND tipo = 'medico' AND especialidade IS NOT NULL;

-- read vacancy: the facts of a vacancy that decide which doctors fit
SELECT vaga.id, vaga.hospital_id, vaga.especialidade_id, especialidade.nome AS especialidade
FROM vagas AS vaga JOIN especialidades AS especialidade ON especialidade.id = vaga.especialidade_id
WHERE vaga.id = :id AND vaga.deleted_at IS NULL;

-- read consider: doctors with their score and the first reason that prevents an offer. Without given ids: the best of all who
-- fit, and one doctor for each reason; quantos counts the doctors with the same reason
SELECT id, telefone, primeiro_nome, impedimento, pontos, quantos FROM (
SELECT considered.*, count(*) OVER (PARTITION BY impedimento) AS quantos,
       row_number() OVER (PARTITION BY impedimento ORDER BY pontos DESC, id) AS posicao FROM (
    SELECT doctor.id, doctor.telefone, doctor.primeiro_nome,
           CASE WHEN doctor.deleted_at IS NOT NULL OR doctor.tipo <> 'medico' THEN 'cadastro_removido'
                {impedimentos}
                WHEN EXISTS (SELECT 1 FROM vagas_ofertas AS offer JOIN vagas AS offered ON offered.id = offer.vaga_id JOIN vagas AS wanted ON wanted.id = :id
                             WHERE offer.cliente_id = doctor.id
                               AND (offer.vaga_id = :id OR :automatico AND offered.hash_dedup = wanted.hash_dedup)) THEN 'ja_oferecida'
                WHEN EXISTS (SELECT 1 FROM vagas AS held JOIN vagas AS wanted ON wanted.id = :id
                             WHERE held.cliente_id = doctor.id AND held.status = 'reservada' AND held.deleted_at IS NULL
                               AND held.data = wanted.data
                               AND {conflito}) THEN 'ja_tem_plantao'
           END AS impedimento,
           CASE WHEN EXISTS (SELECT 1 FROM vagas AS worked WHERE worked.cliente_id = doctor.id AND worked.status = 'realizada') THEN 100 ELSE 0 END
           + CASE WHEN EXISTS (SELECT 1 FROM vagas AS worked WHERE worked.cliente_id = doctor.id AND worked.status = 'realizada'
                               AND worked.hospital_id = :hospital_id) THEN 50 ELSE 0 END
           + 50.0 * CASE WHEN doctor.qualification_score < 0 THEN 0.0 WHEN doctor.qualification_score > 1 THEN 1.0 ELSE doctor.qualification_score END
           + CASE WHEN state.last_outbound_at IS NULL THEN 30 WHEN state.last_outbound_at > :week_ago THEN -50
                  WHEN state.last_outbound_at > :month_ago THEN 20 ELSE 0 END
           + CASE WHEN doctor.especialidade IN ({exatas}) THEN 40 WHEN doctor.especialidade IN ({parciais}) THEN 20 ELSE 0 END AS pontos
    FROM clientes AS doctor LEFT JOIN doctor_state AS state ON state.cliente_id = doctor.id
    WHERE :automatico AND doctor.tipo = 'medico' AND doctor.deleted_at IS NULL
          AND (doctor.especialidade IN ({exatas}) OR doctor.especialidade IN ({parciais}))
       OR NOT :automatico AND doctor.id IN ({clientes})
) AS considered
) AS placed
WHERE NOT :automatico OR posicao <= CASE WHEN impedimento IS NULL THEN :limite ELSE 1 END
ORDER BY pontos DESC, id;
