-- Of an appointment that is known by its origin's id: who, where and when, by which a file without ids finds it again.
ALTER TABLE appointments ADD COLUMN chave_natural TEXT;
CREATE INDEX appointments_by_place ON appointments (chave_natural) WHERE chave_natural IS NOT NULL;
