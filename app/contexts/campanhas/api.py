"""Interface of campaigns for other contexts: count the delivery and the answer of a message."""

from app.contexts.campanhas.alcance import Alcance

__all__ = [
    "Alcance",
]
