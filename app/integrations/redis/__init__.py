"""Redis, if tasks run on it."""
