-- read open: vacancies that need a doctor, the soonest first, with the facts for their text
SELECT vaga.id, vaga.hospital_id, vaga.especialidade_id, vaga.periodo_id, vaga.data, vaga.hora_inicio, vaga.hora_fim, vaga.valor,
       vaga.valor_tipo, hospital.nome AS hospital, hospital.cidade, hospital.estado AS uf, especialidade.nome AS especialidade,
       periodo.nome AS periodo
FROM vagas AS vaga JOIN hospitais AS hospital ON hospital.id = vaga.hospital_id
JOIN especialidades AS especialidade ON especialidade.id = vaga.especialidade_id LEFT JOIN periodos AS periodo ON periodo.id = vaga.periodo_id
WHERE vaga.status IN ('aberta', 'anunciada') AND vaga.deleted_at IS NULL AND vaga.data >= :hoje AND vaga.origem <> 'canario'
  AND NOT EXISTS (SELECT 1 FROM hospitais_bloqueados AS block WHERE block.hospital_id = vaga.hospital_id AND block.status = 'bloqueado')
ORDER BY vaga.data, vaga.hora_inicio, vaga.id LIMIT :limite;

-- read unfit: open vacancies that the doctor was offered before, or that overlap a shift of the doctor
SELECT vaga.id FROM vagas AS vaga
WHERE vaga.status IN ('aberta', 'anunciada') AND vaga.deleted_at IS NULL AND vaga.data >= :hoje
  AND (EXISTS (SELECT 1 FROM vagas_ofertas AS offer WHERE offer.vaga_id = vaga.id AND offer.cliente_id = :cliente_id)
       OR EXISTS (SELECT 1 FROM vagas AS held WHERE held.cliente_id = :cliente_id AND held.status = 'reservada'
                  AND held.deleted_at IS NULL AND held.data = vaga.data
                  AND {conflito}));

-- write offer: record an offer to a doctor, unless the same vacancy was offered before
INSERT INTO vagas_ofertas (vaga_id, cliente_id, mensagem_id, por, created_at)
VALUES (:vaga_id, :cliente_id, :mensagem_id, :por, :now) ON CONFLICT DO NOTHING;
