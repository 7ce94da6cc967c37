"""Campaigns for other contexts: counting a message's delivery and answer for its campaign."""

from app.contexts.campanhas.alcance import Alcance

__all__ = [
    "Alcance",
]
