"""Builds the services for managers: reports, directives, notices, triggers, quality and personal data."""
