"""Chips: the WhatsApp numbers that Julia speaks and listens with."""
