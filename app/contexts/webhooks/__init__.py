"""What the outside tells us: kept before it is answered, worked on afterwards."""
