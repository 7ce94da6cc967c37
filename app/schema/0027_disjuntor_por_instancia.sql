-- The circuit of a chip is named after its instance, which operators know, and no longer after the id of its row.
UPDATE circuits SET circuit_name = (SELECT 'chip:' || instance_name FROM chips WHERE 'chip:' || CAST(chips.id AS TEXT) = circuit_name)
WHERE circuit_name IN (SELECT 'chip:' || CAST(id AS TEXT) FROM chips);
DELETE FROM circuits WHERE circuit_name LIKE 'chip:________-____-____-____-____________';
