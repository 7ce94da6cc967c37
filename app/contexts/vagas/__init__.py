"""Vacancies that were read from groups: import, review, closing notices, corrections."""
