"""Receives the HTTP calls of jobs: registered endpoints, idempotency keys and replies."""
