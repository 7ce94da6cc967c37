"""Reads spreadsheets in a child process."""
