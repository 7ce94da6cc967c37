"""The execution log: one row per fire with start, end, result and reason."""
