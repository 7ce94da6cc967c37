-- write change on sqlite: make the open vacancies of these hospitals and days urgent, and the others not
UPDATE vagas
SET urgente = NOT urgente, updated_at = :now
WHERE status IN ('aberta', 'anunciada')
  AND urgente <> (EXISTS (SELECT 1 FROM json_each(:lugares) AS place
                          WHERE json_extract(place.value, '$.hospital_id') = vagas.hospital_id
                            AND json_extract(place.value, '$.data') = vagas.data))
RETURNING id, urgente;

-- write change on postgres: make the open vacancies of these hospitals and days urgent, and the others not
UPDATE vagas
SET urgente = NOT urgente, updated_at = :now
WHERE status IN ('aberta', 'anunciada')
  AND urgente <> (EXISTS (SELECT 1 FROM jsonb_array_elements(:lugares) AS place
                          WHERE (place ->> 'hospital_id')::uuid = vagas.hospital_id AND (place ->> 'data')::date = vagas.data))
RETURNING id, urgente;

-- read urgent: urgent vacancies that need a doctor
SELECT count(*) AS items FROM vagas WHERE urgente AND status IN ('aberta', 'anunciada');
