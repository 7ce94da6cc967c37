"""Housekeeping: heartbeat, deletion of old history, and business events."""
