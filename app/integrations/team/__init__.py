"""Destinations of the notices to the team."""
