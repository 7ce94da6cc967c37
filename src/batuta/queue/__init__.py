"""Durable queues on SQL tables: workers claim items in batches, hold them with fenced leases, and settle them according
to their outcomes.
"""
