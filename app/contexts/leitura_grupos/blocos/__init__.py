"""Rewrite layouts of messages as lists: a table, a calendar, or days below the name of a month become one line per
shift.
"""
