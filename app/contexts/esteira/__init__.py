"""The groups pipeline: six stages from a message to a vacancy, with its jobs, health and metrics."""
