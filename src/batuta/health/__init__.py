"""Findings: what is wrong, since when, and the next step."""
