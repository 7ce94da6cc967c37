-- The alerts count the hand-offs of a period by hospital.
CREATE INDEX external_handoffs_by_time ON external_handoffs (created_at);
