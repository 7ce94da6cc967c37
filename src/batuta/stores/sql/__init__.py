"""SQL stores: one Database interface for SQLite and PostgreSQL, named queries, numbered migrations, and the stores of
the engine's tables.
"""
