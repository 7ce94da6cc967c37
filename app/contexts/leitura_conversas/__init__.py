"""Reads one inbound text: its class, and whether the person asks for no more messages. The functions are pure: the same
text gives the same reading.
"""
