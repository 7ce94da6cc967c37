"""Simulated Telegram."""
