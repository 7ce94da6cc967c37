"""Durable queues on SQL tables: batched claims, leases with fences, settlements."""
