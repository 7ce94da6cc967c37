"""Judges of real runs: they compare independent witnesses and share no code with the parts they judge."""
