"""Operating system processes: children, restarts, heartbeats, signals and exit codes."""
