"""Telegram: accounts, messages in both directions, chats' past messages, and actions on sent messages."""
