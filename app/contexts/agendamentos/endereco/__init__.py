"""Parsing of addresses by rules."""
