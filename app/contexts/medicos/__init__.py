"""Médicos: who may be written to at all."""
