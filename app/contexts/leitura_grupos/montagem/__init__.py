"""Assemble a message's marks (recognised days, prices, places and other fields) into vacancies."""
