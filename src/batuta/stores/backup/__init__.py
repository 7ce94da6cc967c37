"""Backups: one verified archive file per database, taken under load and restored as a whole."""
