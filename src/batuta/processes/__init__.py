"""Operating system processes: child processes, restarts, heartbeats, signals and exit codes."""
