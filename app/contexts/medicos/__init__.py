"""Doctors: their registration, and the check whether their phones can receive messages."""
