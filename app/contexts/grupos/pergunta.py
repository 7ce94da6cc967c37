"""The one message that asks whoever posted offers for what they lack: in Portuguese, friendly, and nothing that was said."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

CAMPOS: Final = {
    "hospital": "o hospital",
    "especialidade": "a especialidade",
    "data": "o dia",
    "horario": "o horário",
    "valor": "o valor",
}
NOMEADAS: Final = 5
LONGEST: Final = 60
TEXTO: Final = (
    "Oi{nome}! Aqui é a Julia. Vi no grupo o que você anunciou e quero divulgar certinho, mas faltou dizer:\n{linhas}\n"
    "Pode me contar por aqui? Se preferir que eu não escreva mais, é só responder PARAR."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Falta:
    """An offer and what it lacks; what it says is how he knows which is meant."""

    campos: tuple[str, ...]
    hospital: str | None = None
    especialidade: str | None = None
    data: date | None = None
    periodo: str | None = None

    @property
    def resumo(self) -> str:
        told = (self.hospital, self.especialidade, None if self.data is None else f"{self.data:%d/%m}", self.periodo)
        return ", ".join(" ".join(each.split())[:LONGEST] for each in told if each)


def pergunta(nome: str | None, faltas: Sequence[Falta]) -> str:
    """One line for each set of missing fields, however many offers lack it."""
    asked: dict[tuple[str, ...], list[str]] = {}
    for each in faltas:
        missing = tuple(CAMPOS[name] for name in CAMPOS if name in each.campos)
        asked.setdefault(missing, []).append(each.resumo)
    lines = "\n".join(f"• {_enumerado(missing)}{_quais(which)}" for missing, which in asked.items())
    return TEXTO.format(nome=_chamado(nome), linhas=lines)


def _enumerado(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} e {names[-1]}"


def _quais(which: Sequence[str]) -> str:
    told = list(dict.fromkeys(each for each in which if each))
    if not told:
        return ""
    more = f" e mais {len(told) - NOMEADAS}" if len(told) > NOMEADAS else ""
    return f" ({'; '.join(told[:NOMEADAS])}{more})"


def _chamado(nome: str | None) -> str:
    """His first name, if it looks like one."""
    first = next(iter((nome or "").split()), "")
    return f", {first[:LONGEST]}" if first.isalpha() else ""
