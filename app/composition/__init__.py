"""Builds Julia's services: one object graph per process."""
