"""Background work on one SQLite file or a PostgreSQL cluster."""

__version__ = "0.1.0"
