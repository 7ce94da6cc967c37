"""Types of the reading of one inbound text."""

from dataclasses import dataclass
from enum import StrEnum


class OptOut(StrEnum):
    CERTO = "certo"
    PROVAVEL = "provavel"
    NAO = "nao"


class Classe(StrEnum):
    ACEITE = "aceite"
    RECUSA = "recusa"
    PERGUNTA = "pergunta"
    HUMANO = "humano"
    OBJECAO = "objecao"
    CONFIRMACAO = "confirmacao"
    OPT_OUT = "opt_out"
    OUTRO = "outro"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leitura:
    """The reading of a text. ``confianca`` is from 0 to 1. ``trechos`` has the folded words that decided, which are
    personal data like the text.
    """

    classe: Classe
    opt_out: OptOut
    confianca: float
    regra: str  # the name of the rule that decided, or empty if no rule did
    trechos: tuple[str, ...] = ()
