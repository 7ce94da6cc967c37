"""Rules for a doctor's state. The rules do not access the database."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, TypedDict

from app.contexts.comum.texto import fold
from app.contexts.leitura_conversas.api import Classe, Leitura, OptOut
from batuta import BatutaError
from batuta.kernel import dataclass

# Rise of the temperature for each inbound message, and the additional rise for an acceptance or a confirmation.
WROTE: Final = 0.1
POSITIVE: Final = 0.15
# Fall of the temperature for each whole day without an inbound message.
PER_DAY: Final = 0.05
DAY: Final = timedelta(days=1)
COOLING_OFF: Final = timedelta(days=7)
LOST_AFTER: Final = timedelta(days=90)
# A temperature below WARM_FROM is cold; from HOT_FROM on it is hot.
WARM_FROM: Final = 0.33
HOT_FROM: Final = 0.66
# Words that express distrust, a threat or a legal dispute.
_GRAVE: Final = re.compile(
    r"\b(golpe|golpistas?|fraude|calote\w*|enganacao|vigarice|piramide|sacanagem|processar|processo|procon|advogad[oa]"
    r"|justica|policia|denunci\w+|ameaca\w*|assedio)\b"
)


class Permissao(StrEnum):
    NONE = "none"
    INITIAL = "initial"
    ACTIVE = "active"
    COOLING_OFF = "cooling_off"
    OPTED_OUT = "opted_out"


class CicloDeVida(StrEnum):
    """Stages of a doctor's lifecycle."""

    NOVO = "novo"
    PROSPECTING = "prospecting"
    ENGAGED = "engaged"
    QUALIFIED = "qualified"
    ACTIVE = "active"
    CHURNED = "churned"


class Gravidade(StrEnum):
    MEDIUM = "medium"
    GRAVE = "grave"


class EstadoDesconhecido(BatutaError):
    sentence = "doctor {id} does not exist: give the id of a doctor in `clientes`"


class MedicoPediuParaParar(BatutaError):
    sentence = (
        "doctor {id} asked for no more messages: no rest or next contact can be set; only the doctor may allow messages"
    )


class CorrecaoVazia(BatutaError):
    sentence = "nothing to change: give at least one of temperatura, ciclo, descanso_ate, proximo_contato"


class DataPassada(BatutaError):
    sentence = "{campo} must be in the future: give a later date, or end it explicitly"


class CorrecaoDoMedico(TypedDict, total=False):
    """Fields that an operator corrects. An absent field is unchanged. If ``descanso_ate`` is None, the doctor's rest (a
    period without messages from Julia) ends. If ``proximo_contato`` is None, the agreed next contact is cancelled.
    """

    temperatura: float
    ciclo: CicloDeVida
    descanso_ate: datetime | None
    proximo_contato: datetime | None


@dataclass(frozen=True, slots=True)
class Efeito:
    """The effect of one inbound message on the doctor's state. ``gravidade`` is None if the message is not an
    objection.
    """

    sobe: float
    gravidade: Gravidade | None = None
    resolve_objecao: bool = False


@dataclass(frozen=True, slots=True)
class Queda:
    """The fall of a doctor's temperature (interest in shifts). ``quanto`` is the amount, and ``ate`` is the end of the
    last day for which the temperature falls.
    """

    quanto: float
    ate: datetime


def efeito_de(leitura: Leitura, texto: str) -> Efeito:
    """Return the effect of an inbound message on the doctor's state.

    Most messages raise the temperature. Opt-outs, probable opt-outs and serious objections do not.
    """
    if leitura.opt_out is not OptOut.NAO:
        return Efeito(0.0)
    if eh_grave(leitura, texto):
        return Efeito(0.0, Gravidade.GRAVE)
    match leitura.classe:
        case Classe.OBJECAO:
            return Efeito(WROTE, Gravidade.MEDIUM)
        case Classe.ACEITE | Classe.CONFIRMACAO:
            return Efeito(WROTE + POSITIVE, resolve_objecao=True)
        case _:
            return Efeito(WROTE)


def eh_grave(leitura: Leitura, texto: str) -> bool:
    """Return whether a message is a serious objection, which means that it mentions fraud, a threat or a
    legal dispute.
    """
    return leitura.classe in (Classe.OBJECAO, Classe.PERGUNTA, Classe.OUTRO) and _GRAVE.search(fold(texto)) is not None


def queda_de(last_decay_at: datetime | None, last_inbound_at: datetime | None, now: datetime) -> Queda | None:
    """Return how much a doctor's temperature (interest in shifts) falls. It falls for each whole day since its last
    fall or since the last inbound message, whichever is later.

    Returns None if less than a day has passed, or if neither instant is known. ``ate`` is the end of the last whole
    day, so that the next run counts the remaining hours.
    """
    known = [each for each in (last_decay_at, last_inbound_at) if each is not None]
    if not known:
        return None
    since = max(known)
    days = (now - since) // DAY
    return Queda(PER_DAY * days, since + days * DAY) if days > 0 else None


def faixa_de(temperatura: float) -> str:
    """Return the band of a doctor's temperature (interest in shifts): cold, warm or hot."""
    return "cold" if temperatura < WARM_FROM else "warm" if temperatura < HOT_FROM else "hot"


def tendencia(antes: float, depois: float) -> str:
    return "warming" if depois > antes else "cooling" if depois < antes else "stable"


def exigir_correcao(id: str, permissao: Permissao, correcao: CorrecaoDoMedico, now: datetime) -> None:
    """Raise an error if the correction is empty, sets an instant in the past, or changes the rest (a period without
    messages) or the next contact of a doctor who has opted out.
    """
    if not correcao:
        raise CorrecaoVazia
    instants: Mapping[str, datetime | None] = {
        name: correcao[name] for name in ("descanso_ate", "proximo_contato") if name in correcao
    }
    if instants and permissao is Permissao.OPTED_OUT:
        raise MedicoPediuParaParar(id=id)
    for name, instant in instants.items():
        if instant is not None and instant <= now:
            raise DataPassada(campo=name)
