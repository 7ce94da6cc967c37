"""Simulated external services on loopback, for development and tests. They send nothing to other machines."""
