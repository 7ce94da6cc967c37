"""Receives HTTP calls to job endpoints: the registry of endpoints, the idempotency keys and the replies."""
