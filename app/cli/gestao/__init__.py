"""Commands for managers: reports, directives, automatic triggers and the quality of the conversations."""
