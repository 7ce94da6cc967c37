"""Stores for the engine's tables, one module per subject. The stores for items of queues are in
``batuta.stores.sql.queue``.
"""
