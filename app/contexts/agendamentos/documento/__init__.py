"""Reads and masks Brazilian identity documents: CPF, RG and SUS card."""
