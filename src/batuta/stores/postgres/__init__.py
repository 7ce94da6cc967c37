"""The PostgreSQL driver, based on asyncpg's connection pool."""
