"""Hand-offs: a doctor accepts a vacancy, and the person who posted it in a group is asked to confirm the doctor."""
