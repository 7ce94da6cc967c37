"""The SQLite driver: one file, one writer thread, several reader threads."""
