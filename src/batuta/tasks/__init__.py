"""Typed functions on a durable queue."""
