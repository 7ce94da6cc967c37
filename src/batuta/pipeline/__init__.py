"""Ordered stages over one queue table: each stage is a queue of its own, and a hand-over is a settlement."""
