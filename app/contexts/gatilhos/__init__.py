"""Triggers: messages that Julia sends without an operator. They are first contacts, offers, reactivations and requests
for feedback after a shift.
"""
