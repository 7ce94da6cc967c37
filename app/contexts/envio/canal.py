"""Interface between the send protocol and a channel, such as WhatsApp.

The protocol (``remetente``, ``envios_em_duvida``) decides whether a message may be sent, stores the intent to send it,
and records the result. A channel chooses a sender, makes the call, and searches for messages that may have been sent.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol, TypeAlias

from app.contexts.envio.registro import Achada, EnvioEmDuvida, Fatos, Mensagem
from app.contexts.mensagens.api import Desfecho, TipoDeMensagem
from batuta import Snooze
from batuta.guards import Limit
from batuta.kernel import dataclass
from batuta.reasons import define
from batuta.sql import Database, Restored, Transaction, blind_restores

# If a message has waited this long, or is older than this process, a worker may have sent it before the database was
# restored from a backup. The sender then searches for the message before it sends it.
OLDER_THAN_A_COPY: Final = timedelta(minutes=5)
# For this long after a restore that lost the record of sent messages, the sender also searches for messages that were
# queued after the restore: the same text may already have been sent from a row that the restore lost.
LOOKED_FOR_AFTER_RESTORE: Final = timedelta(days=7)
# Tolerance between the clock of the channel and the clock of this machine. The channel's times may have whole seconds.
BEFORE: Final = timedelta(seconds=90)
ECHO_PENDING = define("eco_pendente", "the confirmation of the send may still arrive")


@dataclass(frozen=True, slots=True)
class Enviada:
    """Answer from a channel: it accepted the message. ``jid`` is the recipient's address."""

    message_id: str
    jid: str


@dataclass(frozen=True, slots=True)
class NaoEnviada:
    """Answer from a channel: the message was certainly not sent. The send is retried; after the last attempt, the
    message fails.
    """

    desfecho: Desfecho
    why: str


@dataclass(frozen=True, slots=True)
class Suspensa:
    """Answer from a channel: the message was certainly not sent, for a reason unrelated to the message. The message
    waits, and no attempt is counted.
    """

    until: datetime | timedelta
    why: str


@dataclass(frozen=True, slots=True)
class Recusada:
    """Answer from a channel: it can never send this message, so the message fails without a retry."""

    desfecho: Desfecho
    why: str


@dataclass(frozen=True, slots=True)
class Duvidosa:
    """Answer from a channel: the message may or may not have been sent."""

    why: str


Resposta: TypeAlias = Enviada | NaoEnviada | Suspensa | Recusada | Duvidosa


@dataclass(frozen=True, slots=True)
class Lembrada:
    """Answer from a channel: the message was already sent, before the database was restored. ``mensagem`` names the
    chip or account that sent it.
    """

    mensagem: Mensagem
    achada: Achada


@dataclass(frozen=True, slots=True)
class SemProva:
    """Answer from a channel: the database was restored, and it is unknown whether the message was sent before the
    restore.
    """


@dataclass(frozen=True, slots=True)
class Ausente:
    """Answer from a channel: its search proves that the message was not sent."""


@dataclass(frozen=True, slots=True)
class Incerta:
    """Answer from a channel: it cannot yet prove whether the message was sent. ``until`` is the earliest instant at
    which another search may find proof.
    """

    why: str
    until: datetime | None = None


class Remessa(Protocol):
    """One attempt to send a message. The sender (a chip or an account) has been chosen, and the circuit breakers have
    admitted the attempt. The caller must call either ``send`` or ``give_back``.
    """

    @property
    def limits(self) -> Sequence[Limit]:
        """The rate limits of the chip or account that was chosen to send the message."""
        ...

    async def still_may(self, transaction: Transaction, *, now: datetime) -> bool:
        """Return whether the chosen chip or account is still allowed to send. The check runs in the transaction that
        stores the intent to send.
        """
        ...

    def assign(self, mensagem: Mensagem) -> Mensagem:
        """Return a copy of the message that names the chip or account that sends it."""
        ...

    async def send(self, mensagem: Mensagem) -> Resposta: ...

    async def give_back(self) -> None:
        """Return the unused permissions to the circuit breakers, because the message is not sent in this attempt."""


class Canal(Protocol):
    async def prepare(
        self, fatos: Fatos, tipo: TipoDeMensagem, hash: str
    ) -> Remessa | Lembrada | SemProva | Recusada | Snooze:
        """Choose the chip or account that sends a message. If the message may have been sent before the database was
        restored, search for it first.
        """
        ...

    async def look_up(self, doubt: EnvioEmDuvida) -> Achada | Ausente | Incerta:
        """Search for a message that may or may not have been sent. The caller has already checked that no echo (the
        gateway's report of a sent message) proves the send.
        """
        ...


async def blind_since(database: Database, created_at: datetime, now: datetime) -> Restored | None:
    """Return the time of the first database restore that may have lost the record of sending a message. ``created_at``
    is the time at which the message was queued. Return None if no restore can have lost the record.
    """
    for restored in await blind_restores(database):
        if created_at < restored.restored_at or now < restored.restored_at + LOOKED_FOR_AFTER_RESTORE:
            return restored
    return None
