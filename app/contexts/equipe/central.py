"""Interface to the help desk, in which people of the team answer doctors. Chatwoot implements it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from batuta.guards import EffectReport

CIRCUIT: Final = "chatwoot"
# Label with which a person asks for a conversation that Julia leads.
HUMANO: Final = "humano"
# Label with which a person lets Julia's held messages continue when the conversation is resolved.
CONTINUAR: Final = "continuar"
# Label of every conversation that Julia opens.
JULIA: Final = "julia"


@dataclass(frozen=True, slots=True)
class Falha:
    """A request that failed. ``report`` is the result for the circuit breaker."""

    report: EffectReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Ficha:
    """A conversation to open in the help desk. The doctor's telephone number is not sent."""

    conversa_id: str
    cliente_id: str
    nome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Publicacao:
    """A message to publish in the help desk, which identifies it by ``chave``. A private message is a note that only
    the team sees.
    """

    chave: str
    texto: str
    do_medico: bool = False
    privada: bool = False


class Central(Protocol):
    """Interface of the help desk. Every request may be repeated: a contact, conversation or message that exists already
    is found and not created again.
    """

    async def abrir(self, ficha: Ficha) -> int | Falha:
        """Return the id of the conversation in the help desk, and create contact and conversation if they are missing."""
        ...

    async def publicadas(self, central_id: int) -> frozenset[str] | Falha:
        """Return the keys of the latest messages of a conversation."""
        ...

    async def publicar(self, central_id: int, publicacao: Publicacao) -> Falha | None: ...
    async def etiquetar(self, central_id: int, mais: Sequence[str], menos: Sequence[str]) -> Falha | None:
        """Add and remove labels. Other labels of the conversation are kept."""
        ...

    async def mudar(self, central_id: int, *, aberta: bool) -> Falha | None:
        """Open or resolve a conversation."""
        ...
