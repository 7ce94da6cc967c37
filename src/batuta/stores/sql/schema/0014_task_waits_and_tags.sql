-- Tags and keys by which operators find tasks. Tasks without them need no place in these indexes.
ALTER TABLE tasks ADD COLUMN tags JSONB;
CREATE INDEX tasks_keyed ON tasks (unique_key, created_at) WHERE unique_key IS NOT NULL;

-- on sqlite
CREATE INDEX tasks_tagged ON tasks (created_at) WHERE tags IS NOT NULL;

-- on postgres
CREATE INDEX tasks_tagged ON tasks USING gin (tags jsonb_path_ops) WHERE tags IS NOT NULL;
-- A process waits for the end of these tasks. The trigger notifies it, whichever statement ends the task.
ALTER TABLE tasks ADD COLUMN awaited BOOLEAN NOT NULL DEFAULT FALSE;
CREATE OR REPLACE FUNCTION batuta_notify_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('batuta', 'ended:' || NEW.id);
    RETURN NULL;
END
$$;
CREATE TRIGGER tasks_ended AFTER UPDATE OF status ON tasks FOR EACH ROW
WHEN (NEW.awaited AND NEW.finished_at IS NOT NULL) EXECUTE FUNCTION batuta_notify_end();
