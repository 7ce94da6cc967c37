"""Builds the parts for managers: reports and directives."""
