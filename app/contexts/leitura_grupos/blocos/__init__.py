"""Rewrite message layouts as lists: a table, a calendar, or days listed below the name of a month become one line per
shift.
"""
