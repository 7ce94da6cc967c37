"""SQL stores: one Database interface for SQLite and PostgreSQL, named queries and numbered migrations. The stores
themselves are in ``tables`` and ``queue``.
"""
