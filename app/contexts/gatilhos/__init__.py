"""Triggers: messages that Julia sends without an operator, namely first contacts, offers, reactivations and requests
for feedback after a shift.
"""
