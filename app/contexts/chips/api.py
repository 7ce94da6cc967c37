"""Interface of chips for other contexts: choose the chip that sends a message."""

from app.contexts.chips.selecao import Emissor, Emissores, rank

__all__ = [
    "Emissor",
    "Emissores",
    "rank",
]
