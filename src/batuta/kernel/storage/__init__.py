"""How values are stored: JSON, checks of values that cannot be stored, encryption, and named statements."""
