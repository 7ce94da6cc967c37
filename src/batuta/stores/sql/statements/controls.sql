-- read controls: settings that operators changed at run time
SELECT name, setting, updated_at FROM app_settings WHERE name IN ('schedule_profile', 'windows');

-- write settle: store a setting
INSERT INTO app_settings (name, setting, updated_at) VALUES (:name, :setting, :now)
ON CONFLICT (name) DO UPDATE SET setting = excluded.setting, updated_at = excluded.updated_at;
