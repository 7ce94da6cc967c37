"""Julia: the background operations of a Brazilian medical-staffing team, on Batuta."""
