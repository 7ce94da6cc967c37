"""Loops inside a process: the supervisor that owns the one ``while``, the watchdog, the shutdown and the pruner."""
