"""Stand-ins on loopback for the services outside, for development and tests. They send nothing to anybody."""
