"""Names of hospitals and specialities: dictionary, teaching, clean-up."""
