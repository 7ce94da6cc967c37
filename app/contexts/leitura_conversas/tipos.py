"""Types for the result of reading one inbound text."""

from enum import StrEnum

from batuta.kernel import dataclass


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
    """The result of reading an inbound text.

    If ``opt_out`` is certo or provavel, ``confianca`` is the calibrated probability of an opt-out. Otherwise it is the
    score of ``classe`` divided by the sum of the scores of all classes. ``trechos`` has the words that determined the
    result, which are personal data.
    """

    classe: Classe
    opt_out: OptOut
    confianca: float
    regra: str  # ``pedido`` (the text asks), ``incomodo`` (it only complains), or empty if the text is not an opt-out
    trechos: tuple[str, ...] = ()
