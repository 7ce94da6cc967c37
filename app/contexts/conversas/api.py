"""Conversations for other contexts: the journal of opt-outs."""

from app.contexts.conversas.diario import Diario, digest

__all__ = [
    "Diario",
    "digest",
]
