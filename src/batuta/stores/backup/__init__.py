"""Backups: one archive file with a checksum per database, written while the database is in use and restored as a whole."""
