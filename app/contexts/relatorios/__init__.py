"""Reports about a part of a day or about a week. The figures of each report are counted once, and it is sent once."""
