"""Triggers: first contacts, offers, reactivations and requests for feedback after a shift, which Julia sends without an
operator.
"""
