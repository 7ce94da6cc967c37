"""Parses addresses with rules and a statistical model."""
