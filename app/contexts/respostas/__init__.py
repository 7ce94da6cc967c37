"""Answers to inbound messages: an answer for each class of message. Outside the sending hours, Julia only acknowledges
a message, and answers it in the morning.
"""
