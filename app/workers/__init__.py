"""Julia's processes that operators start by name."""
