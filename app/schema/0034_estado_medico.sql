-- The contacts of the last seven days are counted from the sent messages. A stored count only grew.
ALTER TABLE doctor_state DROP COLUMN contact_count_7d;
CREATE INDEX doctor_state_by_inbound ON doctor_state (last_inbound_at) WHERE lifecycle_stage <> 'churned';
CREATE INDEX doctor_state_by_change ON doctor_state (updated_at DESC);
