-- Few items are cancelled. Without an index the page of the cancelled items reads the whole table.
CREATE INDEX tasks_cancelled ON tasks (queue, id) WHERE status = 'cancelled';
CREATE INDEX pipeline_items_cancelled ON pipeline_items (id) WHERE stage = 'cancelled';
