"""Time as arithmetic: cron, windows, calendars, what is due. No I/O. (Not built yet.)"""
