"""Processes of Julia that operators start by name."""
