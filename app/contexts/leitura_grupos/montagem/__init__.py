"""Assemble the marks of a message (recognised days, prices, places and other fields) into vacancies."""
