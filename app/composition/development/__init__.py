"""Parts for development: the demonstration data and the simulator of external services."""
