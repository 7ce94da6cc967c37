"""Facts as Prometheus figures: counted as they are announced, or asked of the store when somebody looks."""
