"""Tasks: typed functions on a durable queue."""
