-- The audit action of a changed switch is called like the operation.
UPDATE audit_log SET action = 'switch.set' WHERE action = 'switch.turn';
