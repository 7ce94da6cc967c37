"""Redis, used if tasks run on ARQ."""
