"""The interface through which other contexts report to a campaign which messages were delivered and answered."""

from app.contexts.campanhas.alcance import Alcance

__all__ = [
    "Alcance",
]
