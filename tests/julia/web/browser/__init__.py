"""Julia in a real browser."""
