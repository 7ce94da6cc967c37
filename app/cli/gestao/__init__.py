"""Commands for managers: reports, directives, automatic triggers and conversation quality."""
