"""Queue tables and tasks, stored in SQL."""
