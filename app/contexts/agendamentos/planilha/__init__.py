"""Reading of spreadsheets in a child process."""
