"""A message as the rules see it: normalised text and known words."""
