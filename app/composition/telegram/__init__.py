"""Build the Telegram services."""
