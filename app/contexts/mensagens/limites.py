"""Rate limits and sending hours for messages.

A message that Julia initiates must pass every check: the overall limits, the limits for its type, doctor and phone, and
the sending hours. Answers to inbound messages and system notices must pass only the limit for their type, and are sent
at any hour.
"""

from collections.abc import Mapping
from datetime import time, timedelta
from enum import StrEnum
from typing import Final

from batuta.guards import Limit, gap
from batuta.jobs import Window
from batuta.kernel import dataclass

HORA, DIA = timedelta(hours=1), timedelta(days=1)
# The end is exclusive: 20:00 is outside the window.
HORARIO: Final = Window(opens=time(8), lasts=timedelta(hours=12))
# Sending hours for synthetic recipients.
A_QUALQUER_HORA: Final = Window(opens=time(0), lasts=DIA, days=frozenset(range(7)))


class TipoDeMensagem(StrEnum):
    PROSPECCAO = "prospeccao"
    FOLLOWUP = "followup"
    CAMPANHA = "campanha"
    RESPOSTA = "resposta"
    SISTEMA = "sistema"

    @property
    def por_iniciativa_nossa(self) -> bool:
        return self not in (TipoDeMensagem.RESPOSTA, TipoDeMensagem.SISTEMA)


POR_TIPO: Final[Mapping[TipoDeMensagem, int]] = {
    TipoDeMensagem.PROSPECCAO: 10,
    TipoDeMensagem.FOLLOWUP: 15,
    TipoDeMensagem.CAMPANHA: 20,
    TipoDeMensagem.RESPOSTA: 50,
    TipoDeMensagem.SISTEMA: 1000,
}


@dataclass(frozen=True, slots=True)
class Limites:
    hora: Limit
    dia: Limit
    medico: Limit
    telefone: Limit
    tipos: Mapping[TipoDeMensagem, Limit]

    @property
    def todos(self) -> tuple[Limit, ...]:
        return (self.hora, self.dia, *self.tipos.values(), self.medico, self.telefone)

    def de_todos(self, tipo: TipoDeMensagem) -> tuple[Limit, ...]:
        """Return the rate limits that apply to all recipients of this type of message together."""
        return (self.hora, self.dia, self.tipos[tipo])

    def de(self, tipo: TipoDeMensagem, *, medico: str, telefone: str) -> tuple[Limit, ...]:
        """Return the rate limits that a message to this doctor and phone number must pass."""
        if not tipo.por_iniciativa_nossa:
            return (self.tipos[tipo],)
        return (self.hora, self.dia, self.tipos[tipo], self.medico.of(medico), self.telefone.of(telefone))


def limites(*, por_hora: int, por_dia: int, por_medico: int, intervalo: timedelta) -> Limites:
    return Limites(
        hora=Limit(name="envios/hora", key="envios", most=por_hora, per=HORA),
        dia=Limit(name="envios/dia", key="envios", most=por_dia, per=DIA),
        medico=Limit(name="medico/hora", key="medico", most=por_medico, per=HORA, each=True),
        telefone=gap("telefone/intervalo", "telefone", intervalo, each=True),
        tipos={
            tipo: Limit(name=f"{tipo}/hora", key=f"tipo:{tipo}", most=most, per=HORA) for tipo, most in POR_TIPO.items()
        },
    )
