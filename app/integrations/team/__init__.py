"""Destinations for notices to the team."""
