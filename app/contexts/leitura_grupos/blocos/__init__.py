"""Rewrite layouts as lists: a table, a calendar, or days below a month become one line per shift."""
