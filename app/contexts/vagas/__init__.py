"""Vacancies read from groups: import, review, closing, corrections."""
