"""Simulated WhatsApp gateway, with the people behind it."""
