"""Jobs: what is fired, and how a fire is received and answered."""
