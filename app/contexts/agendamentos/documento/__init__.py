"""Reads and masks Brazilian identity documents: CPF, RG, SUS card."""
