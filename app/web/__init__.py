"""Julia's HTTP API. Each route calls a service of a context and formats its result."""
