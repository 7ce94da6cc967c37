"""The execution log: one row for each time a job fires, with its start, end, result and reason."""
