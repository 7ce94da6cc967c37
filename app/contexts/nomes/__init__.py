"""Names of hospitals and specialities: the dictionary, names added by operators, and clean-up."""
