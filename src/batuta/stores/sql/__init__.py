"""SQL on a small port: one Database for SQLite and PostgreSQL, named queries, numbered migrations, and the engine's tables."""
