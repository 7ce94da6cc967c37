"""Julia's HTTP routes, one module per subject."""
