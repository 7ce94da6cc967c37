"""Parses addresses with rules."""
