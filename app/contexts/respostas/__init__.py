"""Answers to inbound messages: one for each class, an acknowledgement outside the sending hours, the answer of the morning."""
