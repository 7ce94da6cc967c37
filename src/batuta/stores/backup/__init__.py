"""Backups of a database. Each backup is one archive file with a checksum, written while the database is in use and
restored as a whole.
"""
