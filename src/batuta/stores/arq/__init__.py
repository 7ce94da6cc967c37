"""Tasks on ARQ: the database stays their truth, Redis carries them to whoever runs them."""
