"""Receives HTTP calls to job endpoints. Contains the registry of endpoints, and the handling of idempotency keys and
replies.
"""
