"""Runs loops inside a process, and contains the supervisor that repeats them, the watchdog, the shutdown and the
pruner.
"""
