"""Tasks: typed functions that run in the background, enqueued on a durable queue."""
