"""The interface to WhatsApp: requests to the gateway and every possible answer.

A client that implements this interface never repeats a send. The send protocol decides from the answer whether to
repeat the send:

    Sent            the message was sent
    Refused         the message was not sent. permanent: a retry fails too. needs_person: every send fails until an
                    operator fixes the cause
    NotOnWhatsApp   the message was not sent: the number has no account
    RateLimited     the message was not sent: too many messages
    Disconnected    the gateway reports a lost connection. The message may have been sent: look for an echo before a
                    second attempt
    Banned          WhatsApp banned the chip's number: make no further requests with it
    Unknown         the message may have been sent. Never repeat the send before the message is proved absent
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol, TypeAlias

from batuta.kernel import dataclass
from batuta.reasons import define


@dataclass(frozen=True, slots=True)
class Sent:
    id: str
    jid: str  # the recipient's address at WhatsApp; its number may differ from the requested number


@dataclass(frozen=True, slots=True)
class Refused:
    why: str  # shown to operators, so it contains no phone number and no message text
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
    """The result when a request gets no usable answer. ``permanent`` means that retries fail until an operator fixes
    the cause.

    ``not_found`` means that the gateway does not know the requested instance or group.
    """

    why: str
    permanent: bool = False
    not_found: bool = False


class Entrega(StrEnum):
    """A message's delivery state. It never moves backwards. A message can become failed only before it is delivered."""

    PENDING = "pending"
    SENT = "sent"
    FAILED = "failed"
    DELIVERED = "delivered"
    READ = "read"

    @property
    def rank(self) -> int:
        return list(Entrega).index(self)


class EstadoDaConexao(StrEnum):
    OPEN = "open"
    CONNECTING = "connecting"
    CLOSE = "close"


@dataclass(frozen=True, slots=True, kw_only=True)
class Instancia:
    """A gateway instance, which is one chip. ``code`` is the reason for its last disconnection, if known."""

    name: str
    state: EstadoDaConexao
    telefone: str | None = None
    code: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Numero:
    """The result of looking up a phone number on WhatsApp. ``telefone`` is the requested number."""

    telefone: str
    exists: bool
    jid: str
    lid: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Encontrada:
    """A message that Julia sent, as found in the gateway's message store."""

    id: str
    jid: str
    em: datetime
    conteudo_hash: str
    entrega: Entrega


@dataclass(frozen=True, slots=True, kw_only=True)
class Grupo:
    """A group's description from the gateway, without the group's members."""

    jid: str
    nome: str | None


NO_LINE = define("no_line", "no gateway is configured: set EVOLUTION_API_URL and EVOLUTION_API_KEY")


class WhatsApp(Protocol):
    async def send_text(self, instance: str, telefone: str, texto: str) -> SendResult: ...

    async def connection(self, instance: str) -> EstadoDaConexao | Unavailable:
        """Return the connection state that the gateway reports. The gateway may report an open connection while every
        send fails, so the results of sends are a better indicator.
        """
        ...

    async def instances(self) -> Sequence[Instancia] | Unavailable: ...

    async def numbers(self, instance: str, telefones: Sequence[str]) -> Sequence[Numero] | Unavailable:
        """Look up phone numbers on WhatsApp. The results have the same order as the requested numbers. A number that
        the gateway omits is missing from the results.
        """
        ...

    async def list_sent(self, instance: str, telefone: str, *, since: datetime) -> Sequence[Encontrada] | Unavailable:
        """List the messages sent to this number since a given time, newest first. The list shows whether a send
        succeeded even though the gateway's answer was lost.
        """
        ...


class NoLine:
    """Client used when no gateway is configured. It refuses every request, with the missing gateway as the reason."""

    async def send_text(self, instance: str, telefone: str, texto: str) -> SendResult:
        return Refused(NO_LINE(), needs_person=True)

    async def connection(self, instance: str) -> EstadoDaConexao | Unavailable:
        return Unavailable(NO_LINE(), permanent=True)

    async def instances(self) -> Sequence[Instancia] | Unavailable:
        return Unavailable(NO_LINE(), permanent=True)

    async def numbers(self, instance: str, telefones: Sequence[str]) -> Sequence[Numero] | Unavailable:
        return Unavailable(NO_LINE(), permanent=True)

    async def list_sent(self, instance: str, telefone: str, *, since: datetime) -> Sequence[Encontrada] | Unavailable:
        return Unavailable(NO_LINE(), permanent=True)


def circuit_of(instance: str) -> str:
    """Return the name of a chip's circuit breaker. It contains the instance name, because operators know the chip by
    that name.
    """
    return f"chip:{instance}"
