"""Export and erase all data of one person."""
