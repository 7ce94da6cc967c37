"""Vacancies read from groups: import, review, closing notices, corrections."""
