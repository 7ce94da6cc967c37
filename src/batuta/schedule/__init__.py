"""Computes schedules (cron, windows, holidays) without I/O."""
