"""Computation of schedules (cron, windows, holidays) without I/O."""
