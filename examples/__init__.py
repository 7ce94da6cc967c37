"""Small programs that use only batuta. Each runs under pytest."""
