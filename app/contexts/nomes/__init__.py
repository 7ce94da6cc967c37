"""Names of hospitals and specialities: the dictionary, the names that operators add, and the removal of wrong names."""
