"""Names of hospitals and specialities: the dictionary, names added by operators, and the deletion of wrong names."""
