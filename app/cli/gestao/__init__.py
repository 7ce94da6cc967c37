"""Commands for managers: reports, directives and the quality of the conversations."""
