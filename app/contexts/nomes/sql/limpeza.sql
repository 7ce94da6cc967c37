-- read suspects: hospitals that the pipeline created, without review and references, one page ordered by id
SELECT hospital.id, hospital.nome FROM hospitais AS hospital
WHERE hospital.precisa_revisao AND hospital.criado_automaticamente AND hospital.id > :depois
  AND NOT EXISTS (SELECT 1 FROM vagas_grupo AS vaga WHERE vaga.hospital_id = hospital.id)
  AND NOT EXISTS (SELECT 1 FROM vagas AS vaga WHERE vaga.hospital_id = hospital.id)
  AND NOT EXISTS (SELECT 1 FROM hospitais_bloqueados AS block WHERE block.hospital_id = hospital.id)
  AND NOT EXISTS (SELECT 1 FROM grupos_whatsapp AS grupo WHERE grupo.hospital_id = hospital.id)
ORDER BY hospital.id LIMIT :limite;

-- write forget_names: delete the aliases of a hospital without references
DELETE FROM hospitais_alias WHERE hospital_id = :id
  AND NOT EXISTS (SELECT 1 FROM vagas_grupo AS vaga WHERE vaga.hospital_id = :id)
  AND NOT EXISTS (SELECT 1 FROM vagas AS vaga WHERE vaga.hospital_id = :id);

-- write delete_hospital: delete a hospital without aliases and references
DELETE FROM hospitais WHERE id = :id AND precisa_revisao AND criado_automaticamente
  AND NOT EXISTS (SELECT 1 FROM hospitais_alias AS alias WHERE alias.hospital_id = :id)
  AND NOT EXISTS (SELECT 1 FROM vagas_grupo AS vaga WHERE vaga.hospital_id = :id)
  AND NOT EXISTS (SELECT 1 FROM vagas AS vaga WHERE vaga.hospital_id = :id);
