"""Answers to inbound messages: an answer for each class, an acknowledgement outside the sending hours, and an answer in
the morning.
"""
