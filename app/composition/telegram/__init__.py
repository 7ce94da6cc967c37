"""Build the services of Telegram."""
