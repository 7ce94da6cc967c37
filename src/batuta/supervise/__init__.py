"""Everything that repeats: loops, the supervisor that owns the one ``while``, signals, child processes."""
