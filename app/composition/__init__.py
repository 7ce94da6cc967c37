"""Builds Julia: one object graph for each process."""
