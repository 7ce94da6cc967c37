-- read version: version of the names
SELECT versao FROM vocabulario_grupos WHERE id = 1;

-- read hospitals: every name of every hospital, with its origin and certainty
SELECT hospital.id, hospital.nome, hospital.cidade, hospital.estado, hospital.precisa_revisao, alias.alias, alias.alias_normalizado,
       alias.origem, alias.confirmado, alias.confianca
FROM hospitais_alias AS alias JOIN hospitais AS hospital ON hospital.id = alias.hospital_id ORDER BY hospital.id, alias.alias_normalizado;

-- read regions: regions in which an operator assigned a name to a hospital
SELECT hospital_id, alias_normalizado, regiao FROM hospitais_alias_regioes;

-- read specialities: every name of every speciality
SELECT especialidade.id, especialidade.nome, alias.alias, alias.alias_normalizado
FROM especialidades_alias AS alias JOIN especialidades AS especialidade ON especialidade.id = alias.especialidade_id
ORDER BY especialidade.id, alias.alias_normalizado;

-- write bump: raise the version after a change of names
UPDATE vocabulario_grupos SET versao = versao + 1 WHERE id = 1;

-- write add_hospital: insert a hospital, once
INSERT INTO hospitais (id, nome, cidade, estado, criado_automaticamente, precisa_revisao, created_at)
VALUES (:id, :nome, :cidade, :uf, :automatico, :automatico, :now) ON CONFLICT DO NOTHING;

-- write add_hospital_alias: upsert an alias of a hospital; an inferred one never replaces a confirmed one
INSERT INTO hospitais_alias (hospital_id, alias, alias_normalizado, origem, criado_por, confianca, confirmado, created_at)
VALUES (:id, :alias, :forma, :origem, :por, :confianca, :confirmado, :now)
ON CONFLICT (hospital_id, alias_normalizado) DO UPDATE
SET origem = excluded.origem, criado_por = excluded.criado_por, confianca = excluded.confianca, confirmado = excluded.confirmado
WHERE excluded.confirmado AND (NOT hospitais_alias.confirmado OR excluded.origem = 'seed');

-- write holds_in: record a region outside the hospital's town where the name is in use
INSERT INTO hospitais_alias_regioes (hospital_id, alias_normalizado, regiao) VALUES (:id, :forma, :regiao) ON CONFLICT DO NOTHING;

-- write unlearn_hospital_alias: delete an inferred alias of another hospital, unless that hospital is in another town
DELETE FROM hospitais_alias WHERE alias_normalizado = :forma AND hospital_id <> :id AND NOT confirmado AND origem = 'sistema_auto'
  AND NOT EXISTS (SELECT 1 FROM hospitais AS other JOIN hospitais AS own ON own.id = :id
                  WHERE other.id = hospitais_alias.hospital_id AND other.cidade <> own.cidade);

-- write use_hospital_alias: count one more use of an alias
UPDATE hospitais_alias SET vezes_usado = vezes_usado + 1 WHERE hospital_id = :id AND alias_normalizado = :forma;

-- write review_hospital: mark a hospital as reviewed by an operator
UPDATE hospitais SET precisa_revisao = FALSE, revisado_em = :now, revisado_por = :por WHERE id = :id AND precisa_revisao;

-- write add_speciality: insert a speciality, once
INSERT INTO especialidades (id, nome, created_at) VALUES (:id, :nome, :now) ON CONFLICT DO NOTHING;

-- write add_speciality_alias: insert an alias of a speciality, once
INSERT INTO especialidades_alias (especialidade_id, alias, alias_normalizado, origem, criado_por, confirmado, created_at)
VALUES (:id, :alias, :forma, :origem, :por, :confirmado, :now) ON CONFLICT DO NOTHING;
