"""Telegram through Telethon (MTProto). Only the Telegram worker and `batuta telegram login` import this package."""
