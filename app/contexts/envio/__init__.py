"""Sends messages: the protocol that neither loses nor doubles one, its record and its doubts."""
