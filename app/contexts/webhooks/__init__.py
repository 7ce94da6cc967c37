"""Webhooks: each delivery is stored before it is acknowledged, and processed later."""
