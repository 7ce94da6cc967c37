"""Answers to inbound messages, depending on the class of each message. Outside the sending hours, Julia only
acknowledges a message, and answers it in the morning.
"""
