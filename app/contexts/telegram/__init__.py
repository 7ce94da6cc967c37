"""Telegram: accounts, messages in both directions, past messages of chats, and actions on sent messages."""
