"""Reports about a part of a day or a week. Each report is computed once and sent once."""
