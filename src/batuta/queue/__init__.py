"""A durable table is a queue: claimed in batches, leased, fenced, settled by value."""
