-- The sheet an appointment's row stands in, where a file has several.
ALTER TABLE appointments ADD COLUMN aba TEXT;
