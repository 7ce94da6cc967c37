"""Interface for other contexts to use doctors' states: it decides which objections are grave."""

from app.contexts.estado_medico.model import eh_grave

__all__ = ["eh_grave"]
