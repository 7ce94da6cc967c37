"""Interface to the help desk, in which team members answer doctors. It is implemented for Chatwoot."""

from collections.abc import Sequence
from typing import Final, Protocol

from batuta.guards import EffectReport
from batuta.kernel import dataclass

CIRCUIT: Final = "chatwoot"
# Label with which a team member requests a conversation that Julia is handling.
HUMANO: Final = "humano"
# Label with which a team member decides that the messages held back are sent when the conversation is resolved. Without
# the label they are cancelled.
CONTINUAR: Final = "continuar"
# Label of every conversation that Julia opens.
JULIA: Final = "julia"


@dataclass(frozen=True, slots=True)
class Falha:
    """A request to the help desk that failed. ``report`` is the result for the circuit breaker."""

    report: EffectReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Ficha:
    """Data for opening a conversation in the help desk, without the doctor's phone number."""

    conversa_id: str
    cliente_id: str
    nome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Publicacao:
    """A message to publish in the help desk. ``chave`` identifies the message in the help desk. A private message is a
    note that only the team sees.
    """

    chave: str
    texto: str
    do_medico: bool = False
    privada: bool = False


class Central(Protocol):
    """Interface of the help desk. Every request may be repeated: the help desk creates each contact, conversation and
    message only once.
    """

    async def abrir(self, ficha: Ficha) -> int | Falha:
        """Return the id of the conversation in the help desk. Create the contact and the conversation if they are
        missing.
        """
        ...

    async def publicadas(self, central_id: int) -> frozenset[str] | Falha:
        """Return the keys of a conversation's latest messages in the help desk."""
        ...

    async def publicar(self, central_id: int, publicacao: Publicacao) -> Falha | None: ...
    async def etiquetar(self, central_id: int, mais: Sequence[str], menos: Sequence[str]) -> Falha | None:
        """Add labels to a conversation in the help desk, and remove labels from it. All other labels are kept."""
        ...

    async def mudar(self, central_id: int, *, aberta: bool) -> Falha | None:
        """Open or resolve a conversation in the help desk."""
        ...
