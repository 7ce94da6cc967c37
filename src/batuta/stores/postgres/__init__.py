"""PostgreSQL through asyncpg's pool."""
