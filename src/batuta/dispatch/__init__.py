"""Scheduled jobs: the timetable, due fires, runs and their recovery."""
