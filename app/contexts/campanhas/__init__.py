"""Campaigns, which send one text to many doctors: audience, start, and counts of sent, delivered and
answered messages.
"""
