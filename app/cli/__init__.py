"""Julia's commands for ``batuta``."""
