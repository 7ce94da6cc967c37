"""Upkeep: heartbeat, retention of history, and business events."""
