"""Interface of campaigns for other contexts, which report the delivery of each message and the answers to it."""

from app.contexts.campanhas.alcance import Alcance

__all__ = [
    "Alcance",
]
