-- The records of the program that belong to the batch in addition to its tasks (``BatchMembers.name``), or NULL.
ALTER TABLE batches ADD COLUMN members TEXT;
