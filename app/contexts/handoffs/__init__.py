"""Hand-offs: the person who posted a vacancy in a group confirms that a doctor takes it."""
