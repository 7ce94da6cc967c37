"""Appointments. An import stores the rows of a spreadsheet; background tasks then parse addresses and documents."""
