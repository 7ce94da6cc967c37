-- write note: who did what
INSERT INTO audit_log (id, at, actor, action, subject, before, after)
VALUES (:id, :now, :actor, :action, :subject, :before, :after);
