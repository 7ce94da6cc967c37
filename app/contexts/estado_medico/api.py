"""Interface of doctors' states for other contexts: decide whether an objection is grave."""

from app.contexts.estado_medico.model import eh_grave

__all__ = ["eh_grave"]
