"""Builds Telegram."""
