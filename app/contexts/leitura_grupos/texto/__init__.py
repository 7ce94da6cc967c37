"""Prepare a group message for the rules: normalise the text and find the known words."""
