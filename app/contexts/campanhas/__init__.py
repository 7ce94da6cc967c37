"""Campaigns, which send one text to many doctors. This context chooses the audience, starts campaigns, and counts sent,
delivered and answered messages.
"""
