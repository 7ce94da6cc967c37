"""Messages that Julia starts without an operator: first contacts, offers, reactivations, feedback after a shift."""
