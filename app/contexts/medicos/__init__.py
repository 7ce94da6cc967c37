"""Doctors: whether their phones can receive messages."""
