"""Scheduled jobs: the timetable, the fires that are due, the runs, and the recovery of runs whose process died."""
