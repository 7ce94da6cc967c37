"""Classify a group message as an offer, a closing notice, conversation or another category."""
