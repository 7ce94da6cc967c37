"""The line to WhatsApp as Julia sees it: what can be asked, and every way it can be answered.

A send is never repeated in here. Whether it may be repeated is decided by the send protocol, and only from these answers:

    Sent            it left
    Refused         it did not leave. permanent: this message never will. needs_person: nothing will, until somebody sets it right
    NotOnWhatsApp   it did not leave: nobody has that number
    RateLimited     it did not leave: too many
    Disconnected    the gateway says that its line is down. It is the gateway's word, given on a broken line: look for an echo
                    before a second attempt
    Banned          the number itself was shut out: nothing more may be tried with it
    Unknown         perhaps it left. Never repeat it before it is proved absent
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol, TypeAlias

from batuta.reasons import define


@dataclass(frozen=True, slots=True)
class Sent:
    id: str
    jid: str  # as WhatsApp knows the recipient: not always the number that was given


@dataclass(frozen=True, slots=True)
class Refused:
    why: str  # for operators: no number, no text
    permanent: bool = False
    needs_person: bool = False


@dataclass(frozen=True, slots=True)
class NotOnWhatsApp:
    pass


@dataclass(frozen=True, slots=True)
class RateLimited:
    retry_after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Disconnected:
    pass


@dataclass(frozen=True, slots=True)
class Banned:
    code: int


@dataclass(frozen=True, slots=True)
class Unknown:
    why: str


SendResult: TypeAlias = Sent | Refused | NotOnWhatsApp | RateLimited | Disconnected | Banned | Unknown


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A question that was not answered. ``permanent``: asking again changes nothing until a person changes something.

    ``is_nobody``: the gateway knows nobody of that name.
    """

    why: str
    permanent: bool = False
    is_nobody: bool = False


class Entrega(StrEnum):
    """How far a message got. It never goes back; failed only before it was delivered."""

    PENDING = "pending"
    SENT = "sent"
    FAILED = "failed"
    DELIVERED = "delivered"
    READ = "read"

    @property
    def rank(self) -> int:
        return list(Entrega).index(self)


class Conexao(StrEnum):
    OPEN = "open"
    CONNECTING = "connecting"
    CLOSE = "close"


@dataclass(frozen=True, slots=True, kw_only=True)
class Instancia:
    """An instance of the gateway: a chip. ``code``: why it was cut off last, if it was."""

    name: str
    state: Conexao
    telefone: str | None = None
    code: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Numero:
    """``telefone`` is the number that was asked about."""

    telefone: str
    exists: bool
    jid: str
    lid: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Encontrada:
    """A message of ours that the gateway has in its own store."""

    id: str
    jid: str
    em: datetime
    conteudo_hash: str
    entrega: Entrega


@dataclass(frozen=True, slots=True, kw_only=True)
class Grupo:
    """A group as the gateway knows it; who is in it is nobody's business here."""

    jid: str
    nome: str | None


NO_LINE = define("no_line", "no gateway is set: set EVOLUTION_API_URL and EVOLUTION_API_KEY")


class WhatsApp(Protocol):
    async def send_text(self, instance: str, telefone: str, texto: str) -> SendResult: ...

    async def connection(self, instance: str) -> Conexao | Unavailable:
        """What the gateway believes. It may say open while every send fails: trust what sends say."""
        ...

    async def instances(self) -> Sequence[Instancia] | Unavailable: ...

    async def numbers(self, instance: str, telefones: Sequence[str]) -> Sequence[Numero] | Unavailable:
        """Who of them is there, in the order they were asked for; one the gateway forgot is left out."""
        ...

    async def list_sent(self, instance: str, telefone: str, *, since: datetime) -> Sequence[Encontrada] | Unavailable:
        """What left for this number since then, newest first: how an unknown send is reconciled."""
        ...


class NoLine:
    """Until somebody sets a gateway. Everything waits, and says what for."""

    async def send_text(self, instance: str, telefone: str, texto: str) -> SendResult:
        return Refused(NO_LINE(), needs_person=True)

    async def connection(self, instance: str) -> Conexao | Unavailable:
        return Unavailable(NO_LINE(), permanent=True)

    async def instances(self) -> Sequence[Instancia] | Unavailable:
        return Unavailable(NO_LINE(), permanent=True)

    async def numbers(self, instance: str, telefones: Sequence[str]) -> Sequence[Numero] | Unavailable:
        return Unavailable(NO_LINE(), permanent=True)

    async def list_sent(self, instance: str, telefone: str, *, since: datetime) -> Sequence[Encontrada] | Unavailable:
        return Unavailable(NO_LINE(), permanent=True)


def circuit_of(instance: str) -> str:
    """The name of a chip's circuit: by its instance, which operators know."""
    return f"chip:{instance}"
