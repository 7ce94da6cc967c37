"""The port to WhatsApp: requests to the gateway and every possible answer.

An implementation never repeats a send. The send protocol decides whether to repeat it, only from these answers:

    Sent            it left
    Refused         it did not leave. permanent: this message never will. needs_person: none will, until an operator fixes the cause
    NotOnWhatsApp   it did not leave: the number has no account
    RateLimited     it did not leave: too many messages
    Disconnected    the gateway reports a lost connection. The message may still have left: look for an echo before a
                    second attempt
    Banned          WhatsApp banned the number: try nothing more with it
    Unknown         it may have left. Never repeat it before it is proved absent
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
    jid: str  # the recipient as WhatsApp knows it; may differ from the number in the request


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
    """A request without an answer. ``permanent``: a retry fails too, until an operator changes something.

    ``not_found``: the gateway has no instance of that name.
    """

    why: str
    permanent: bool = False
    not_found: bool = False


class Entrega(StrEnum):
    """Delivery of a message. It never moves backwards; it fails only before it is delivered."""

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
    """An instance of the gateway: a chip. ``code``: why its connection was last closed, if it was."""

    name: str
    state: Conexao
    telefone: str | None = None
    code: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Numero:
    """Result of a look-up. ``telefone`` is the number in the request."""

    telefone: str
    exists: bool
    jid: str
    lid: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Encontrada:
    """A message of ours in the gateway's store."""

    id: str
    jid: str
    em: datetime
    conteudo_hash: str
    entrega: Entrega


@dataclass(frozen=True, slots=True, kw_only=True)
class Grupo:
    """A group as the gateway reports it, without its members."""

    jid: str
    nome: str | None


NO_LINE = define("no_line", "no gateway is configured: set EVOLUTION_API_URL and EVOLUTION_API_KEY")


class WhatsApp(Protocol):
    async def send_text(self, instance: str, telefone: str, texto: str) -> SendResult: ...

    async def connection(self, instance: str) -> Conexao | Unavailable:
        """Return the gateway's view. It may report open while every send fails: results of sends are more reliable."""
        ...

    async def instances(self) -> Sequence[Instancia] | Unavailable: ...

    async def numbers(self, instance: str, telefones: Sequence[str]) -> Sequence[Numero] | Unavailable:
        """Look up numbers; results in the order of the request, without numbers that the gateway omitted."""
        ...

    async def list_sent(self, instance: str, telefone: str, *, since: datetime) -> Sequence[Encontrada] | Unavailable:
        """List messages that left for this number since an instant, newest first; reconciles unknown sends."""
        ...


class NoLine:
    """The port while no gateway is configured: every request is refused with that reason."""

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
    """Return the name of a chip's circuit breaker: it contains the instance, which operators know."""
    return f"chip:{instance}"
