"""Parses an address by rules."""
