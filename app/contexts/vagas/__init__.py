"""Vacancies that were read from group messages: import, review, closing notices and corrections."""
