-- read setting: a fact about this database
SELECT setting FROM app_settings WHERE name = :name;

-- write settle: record a fact about this database, unless it is already recorded
INSERT INTO app_settings (name, setting, updated_at) VALUES (:name, :setting, :now) ON CONFLICT DO NOTHING;
