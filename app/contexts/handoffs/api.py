"""Interface of hand-offs for other contexts: open a hand-off when a doctor accepts a vacancy."""

from app.contexts.handoffs.model import Aberto, Impedimento
from app.contexts.handoffs.service import Handoffs
from app.contexts.handoffs.textos import quando

__all__ = ["Aberto", "Handoffs", "Impedimento", "quando"]
