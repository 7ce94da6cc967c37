"""Telegram code that does not depend on the MTProto protocol: the encryption of sessions, and the client for the
simulated Telegram.
"""
