"""Routes for managers: reports and directives."""
