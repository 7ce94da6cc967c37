"""Judges what a message is: offer, closing, chatter."""
