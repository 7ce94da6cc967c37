"""Runs loops inside a process: the supervisor that repeats them, the watchdog, the shutdown and the pruner."""
