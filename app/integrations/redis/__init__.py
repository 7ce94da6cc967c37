"""Redis, where tasks run on it."""
