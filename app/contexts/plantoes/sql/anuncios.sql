-- read facts: the facts for the text of an offer
SELECT vaga.id, vaga.hospital_id, vaga.data, vaga.hora_inicio, vaga.hora_fim, vaga.valor, vaga.valor_tipo, hospital.nome AS hospital,
       hospital.cidade, hospital.estado AS uf, especialidade.nome AS especialidade, periodo.nome AS periodo,
       EXISTS (SELECT 1 FROM hospitais_bloqueados AS block WHERE block.hospital_id = vaga.hospital_id AND block.status = 'bloqueado')
           AS "bloqueado [BOOLEAN]"
FROM vagas AS vaga JOIN hospitais AS hospital ON hospital.id = vaga.hospital_id
JOIN especialidades AS especialidade ON especialidade.id = vaga.especialidade_id LEFT JOIN periodos AS periodo ON periodo.id = vaga.periodo_id
WHERE vaga.id = :id;

-- write offer: record an offer to a doctor; the key refuses a second one
INSERT INTO vagas_ofertas (vaga_id, cliente_id, mensagem_id, por, created_at) VALUES (:id, :cliente_id, :mensagem_id, :por, :now);
