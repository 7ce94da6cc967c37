"""Durable queues on SQL tables: workers claim items in batches, hold them with fenced leases, and settle their outcomes."""
