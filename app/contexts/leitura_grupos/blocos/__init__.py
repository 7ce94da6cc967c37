"""Rewrites layouts as lists: a table, a calendar or bare days below a month become one line per shift."""
