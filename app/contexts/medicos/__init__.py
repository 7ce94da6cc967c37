"""Doctors: their registration, and whether their phones can receive messages."""
