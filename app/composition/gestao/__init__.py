"""Builds the services for managers: reports, directives, notices, triggers, quality, personal data."""
