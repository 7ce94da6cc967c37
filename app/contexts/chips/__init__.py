"""Chips: the WhatsApp numbers with which Julia sends messages and reads groups."""
