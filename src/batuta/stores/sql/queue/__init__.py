"""Queue tables and tasks in SQL."""
