"""Julia's HTTP API. A route calls the service of a context and formats its result."""
