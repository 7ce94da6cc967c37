"""A question to a model, and what may come of it."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from batuta.guard.base import Told
from batuta.kernel.json import Json
from batuta.kernel.writable import json_object

LARGEST: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Pergunta:
    """A fixed order, the data, and the form the answer has to fill in."""

    instrucao: str
    dados: str
    schema: Mapping[str, Any]


def entre_marcas(texto: str) -> str:
    """The text between two marks nobody can guess: whatever it says, it cannot end before its end."""
    mark = secrets.token_hex(8)
    return f"{mark}\n{texto}\n{mark}"


@dataclass(frozen=True, slots=True)
class Respondeu:
    """``documento`` is None where it said nothing that can be read."""

    documento: Json
    entrada: int = 0
    saida: int = 0


def legivel(documento: Json) -> Json:
    """An object that both databases can hold as it is, or None: a number without end or half a letter is no answer to anything."""
    if not isinstance(documento, Mapping):
        return None
    return documento if json_object(documento, LARGEST) == documento else None


@dataclass(frozen=True, slots=True)
class Calou:
    """There was no answer; ``told`` says what that says of the model."""

    told: Told


Resposta: TypeAlias = Respondeu | Calou


class Modelo(Protocol):
    async def perguntar(self, instrucao: str, dados: str, schema: Mapping[str, Any]) -> Resposta: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Precos:
    """In dollars, by a million tokens; and what may be spent in a day."""

    entrada: float
    saida: float
    por_dia: float

    def de(self, resposta: Respondeu) -> float:
        return (resposta.entrada * self.entrada + resposta.saida * self.saida) / 1_000_000
