"""What ran, when, why not, and how it ended: one row per fire."""
