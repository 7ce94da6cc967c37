-- Changes of many items of a queue, which a loop performs in batches. ``place`` is the last item that was compared with the filter.
CREATE TABLE bulk_operations (
    id          UUID PRIMARY KEY,
    queue       TEXT NOT NULL,
    change      TEXT NOT NULL CHECK (change IN ('retry', 'discard', 'cancel')),
    filter      JSONB NOT NULL,
    status      TEXT NOT NULL CHECK (status IN ('running', 'done', 'stopped')),
    created_by  TEXT NOT NULL,
    created_at  TIMESTAMPTZ NOT NULL,
    expected    BIGINT NOT NULL,
    seen        BIGINT NOT NULL DEFAULT 0,
    changed     BIGINT NOT NULL DEFAULT 0,
    ticket      BIGINT NOT NULL DEFAULT 0,
    place_at    TIMESTAMPTZ,
    place_id    UUID,
    finished_at TIMESTAMPTZ
);
CREATE INDEX bulk_operations_running ON bulk_operations (created_at) WHERE status = 'running';
CREATE INDEX bulk_operations_by_queue ON bulk_operations (queue, created_at DESC);
