"""The execution log: one row per fire of a job, with start, end, result and reason."""
