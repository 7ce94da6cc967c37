"""Scheduled jobs: the timetable, the due fires, the runs, and the recovery of runs whose process died."""
