"""Small programs that use batuta alone. Each runs under pytest."""
