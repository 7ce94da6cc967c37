"""SQL stores: one Database interface for SQLite and PostgreSQL, named queries, numbered migrations, and stores for the
engine's tables.
"""
