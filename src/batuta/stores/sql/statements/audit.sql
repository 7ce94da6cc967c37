-- write note: record an operator's action
INSERT INTO audit_log (id, at, actor, action, subject, before, after)
VALUES (:id, :now, :actor, :action, :subject, :before, :after);

-- write prune_access: delete entries of accesses older than :before
DELETE FROM audit_log
WHERE id IN (
    SELECT id FROM audit_log
    WHERE at < :before AND (action LIKE 'access.%' OR action LIKE 'session.%')
    ORDER BY at LIMIT :limit
);

-- read listed: one page of the entries, the newest first
SELECT id, at, actor, action, subject, before, after FROM audit_log
WHERE (at, id) < (:before, :before_id) ORDER BY at DESC, id DESC LIMIT :limit;
