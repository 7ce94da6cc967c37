"""Reads the class and the opt-out of one inbound text. Pure: the same text gives the same reading."""
