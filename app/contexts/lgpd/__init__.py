"""Export and erase all data of one person, as the data protection law LGPD requires."""
