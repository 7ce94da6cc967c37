"""Computes when schedules fire (cron, windows, holidays). This package performs no I/O."""
