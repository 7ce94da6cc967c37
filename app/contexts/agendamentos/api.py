"""Functions and types of the appointments context that other contexts may import."""

from app.contexts.agendamentos.documento.cifra import ENCRYPTED, decifrado

__all__ = ["ENCRYPTED", "decifrado"]
