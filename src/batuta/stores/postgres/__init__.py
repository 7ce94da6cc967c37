"""PostgreSQL driver on asyncpg's pool."""
