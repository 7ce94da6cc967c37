"""Readers that mark dates, hours, places, prices and contacts in a text."""
