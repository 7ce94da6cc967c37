"""Appointments: a spreadsheet is imported at once; its addresses and documents are read by background tasks."""
