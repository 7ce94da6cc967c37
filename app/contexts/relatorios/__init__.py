"""Reports about part of a day or about a week. Each report is computed once and sent once."""
