"""SQL of queue tables and tasks."""
