"""Reports of a part of the day and of a week: counted, stored, and sent once."""
