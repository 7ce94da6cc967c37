"""Export and erase all data about one person, as the data protection law LGPD requires."""
