"""Reads and masks documents: CPF, RG, SUS card."""
