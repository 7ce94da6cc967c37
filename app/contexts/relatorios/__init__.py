"""Reports about a part of a day or about a week. Each report is counted once, stored and sent once."""
