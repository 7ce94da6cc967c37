"""Assembles marks into vacancies."""
