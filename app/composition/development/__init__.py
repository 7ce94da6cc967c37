"""Parts for development: the demonstration data and the simulator of the outside services."""
