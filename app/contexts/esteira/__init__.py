"""The groups pipeline: six stages from a message to a vacancy, its jobs, health and metrics."""
