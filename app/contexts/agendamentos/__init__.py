"""Appointments: a spreadsheet is taken at once, its addresses and documents are read afterwards."""
