-- Rows of a file that were read and that the database did not take.
ALTER TABLE importacoes ADD COLUMN recusadas INTEGER NOT NULL DEFAULT 0;
