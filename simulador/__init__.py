"""Stand-ins on loopback for the external services, for development and tests. They send nothing outside."""
