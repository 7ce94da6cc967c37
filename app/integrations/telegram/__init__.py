"""Telegram apart from its protocol: encryption of sessions, and the client of the simulated Telegram."""
