"""Interface of doctors' states for other contexts: it decides which objections are grave."""

from app.contexts.estado_medico.model import eh_grave

__all__ = ["eh_grave"]
