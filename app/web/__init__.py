"""Julia's HTTP API. Each route calls a service of ``app/contexts`` and formats its result."""
