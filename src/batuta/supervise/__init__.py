"""Everything that repeats, and what keeps it going: loops, the supervisor that owns the one ``while``, signals, child processes."""
