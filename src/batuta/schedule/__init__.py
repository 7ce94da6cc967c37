"""Time as arithmetic: cron, windows, holidays. No I/O."""
