"""Prometheus metrics, either counted from events or read from the store on request."""
