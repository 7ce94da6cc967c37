"""Chips: the WhatsApp numbers that Julia sends and reads with."""
