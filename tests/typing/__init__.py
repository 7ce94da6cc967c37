"""Programs that the type checker must accept, and calls that it must reject."""
