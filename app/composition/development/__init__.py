"""Modules for development only: the demonstration data and the simulator of external services."""
