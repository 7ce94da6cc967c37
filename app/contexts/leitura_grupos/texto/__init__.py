"""Prepares a message for the rules: normalised text and known words."""
