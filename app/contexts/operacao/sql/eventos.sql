-- write record: store a business event; a repeated event is stored once
INSERT INTO business_events (id, ts, event_type, source, cliente_id, vaga_id, hospital_id, conversation_id, event_props, dedupe_key)
VALUES (:id, :now, :event_type, :source, :cliente_id, :vaga_id, :hospital_id, :conversation_id, :props, :dedupe_key)
ON CONFLICT DO NOTHING;
