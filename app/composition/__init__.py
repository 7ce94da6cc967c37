"""Builds Julia: one object graph per process."""
