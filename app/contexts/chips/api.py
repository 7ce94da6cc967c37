"""Chips for other contexts: choosing the chip that sends a message."""

from app.contexts.chips.selecao import Emissor, Emissores, rank

__all__ = [
    "Emissor",
    "Emissores",
    "rank",
]
