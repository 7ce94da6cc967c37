"""Commands for managers: reports, directives, triggers and the quality of the conversations."""
