"""The parts of the appointments that other contexts use."""

from app.contexts.agendamentos.documento.cifra import ENCRYPTED, decifrado

__all__ = ["ENCRYPTED", "decifrado"]
