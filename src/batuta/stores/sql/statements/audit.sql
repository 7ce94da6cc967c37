-- write note: record an operator's action
INSERT INTO audit_log (id, at, actor, action, subject, before, after)
VALUES (:id, :now, :actor, :action, :subject, :before, :after);
