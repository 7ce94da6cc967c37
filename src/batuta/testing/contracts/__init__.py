"""Contracts of a store as tests: subclass them, provide the fixtures, and let pytest collect them."""
