"""Reads a spreadsheet in a child process."""
