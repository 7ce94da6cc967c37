-- read hospitals: hospitals that have this name
SELECT hospital.id, hospital.nome, hospital.cidade, hospital.estado, alias.alias, alias.origem, alias.confirmado, alias.criado_por
FROM hospitais_alias AS alias JOIN hospitais AS hospital ON hospital.id = alias.hospital_id
WHERE alias.alias_normalizado = :forma ORDER BY hospital.id;

-- read specialities: specialities that have this name
SELECT especialidade.id, especialidade.nome, alias.alias, alias.origem, alias.confirmado, alias.criado_por
FROM especialidades_alias AS alias JOIN especialidades AS especialidade ON especialidade.id = alias.especialidade_id
WHERE alias.alias_normalizado = :forma ORDER BY especialidade.id;

-- write forget_hospital_name: delete an alias of a hospital
DELETE FROM hospitais_alias WHERE hospital_id = :id AND alias_normalizado = :forma;

-- write rename_hospital: make another alias the main name; confirmed aliases come first
UPDATE hospitais SET nome = (
    SELECT alias.alias FROM hospitais_alias AS alias WHERE alias.hospital_id = hospitais.id
    ORDER BY alias.confirmado DESC, alias.vezes_usado DESC, alias.alias_normalizado LIMIT 1)
WHERE id = :id AND EXISTS (SELECT 1 FROM hospitais_alias AS alias WHERE alias.hospital_id = hospitais.id);

-- write forget_speciality_name: delete an alias of a speciality
DELETE FROM especialidades_alias WHERE especialidade_id = :id AND alias_normalizado = :forma;
