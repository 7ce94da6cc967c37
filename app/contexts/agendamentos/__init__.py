"""Appointments. An import stores the rows of a spreadsheet; background tasks then read addresses and documents."""
