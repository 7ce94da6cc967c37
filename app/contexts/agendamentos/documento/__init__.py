"""Reading and masking of documents: CPF, RG, SUS card."""
