"""Interface of campaigns for other contexts, which report the delivery and the answer of each message."""

from app.contexts.campanhas.alcance import Alcance

__all__ = [
    "Alcance",
]
