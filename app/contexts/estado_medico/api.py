"""Interface of the context ``estado_medico`` for other contexts: the function that decides whether a doctor's message
is a serious objection, which means that it mentions fraud, a threat or a legal dispute.
"""

from app.contexts.estado_medico.model import eh_grave

__all__ = ["eh_grave"]
