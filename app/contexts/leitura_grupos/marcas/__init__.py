"""Functions that find dates, hours, places, prices and contacts in a text."""
