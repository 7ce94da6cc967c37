"""Housekeeping: heartbeat, deletion of old rows, and business events."""
