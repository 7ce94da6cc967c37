"""Parts of Telegram that do not depend on its protocol: the encryption of sessions, and the client of the simulated
Telegram.
"""
