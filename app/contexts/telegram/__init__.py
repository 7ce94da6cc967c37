"""Telegram: accounts, messages in both directions, history, and actions on sent messages."""
