"""Runs loops inside a process. Contains the supervisor that repeats the loops' ticks, the watchdog, the shutdown and
the pruner.
"""
