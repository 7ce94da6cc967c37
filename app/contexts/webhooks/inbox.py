"""The webhook inbox. The API stores and acknowledges a delivery, and the worker processes it later. A repeated delivery
has no effect.

A delivery's facts are written in the transaction that settles its row. If the processing fails half-way, it starts
again from the beginning. A processed delivery is never processed twice.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol, assert_never

from app.contexts.webhooks.api import (
    DeGrupo,
    Eco,
    EntregaDoWebhook,
    EscritaNaCentral,
    Fato,
    Ignorado,
    Ligacao,
    MudancaNaCentral,
    Recebida,
    Recibo,
)
from batuta import Done
from batuta.kernel import Json
from batuta.queues import ItemHandler, Lease, NewItem, QueueTable, after_seconds
from batuta.sql import AsJson

WEBHOOK_INBOX = QueueTable(
    name="webhook_inbox",
    ready=("pendente",),
    running="processando",
    done="processada",
    dead="erro",
    cancelled="cancelada",
    attempts="tentativas",
    crashes="quedas",
    error="erro",
    key="chave",
    result="resultado",
)
TIMEOUT = timedelta(seconds=60)
RETRY = after_seconds([1, 5, 30, 120, 600])


class Store(Protocol):
    async def put(self, items: Sequence[NewItem]) -> list[str | None]: ...


class Conversas(Protocol):
    async def recebida(self, transaction: Any, fato: Recebida, *, now: datetime) -> None: ...
    async def eco(self, transaction: Any, fato: Eco, *, now: datetime) -> None: ...
    async def recibo(self, transaction: Any, fato: Recibo, *, now: datetime) -> None: ...


class Grupos(Protocol):
    async def ingerir(self, transaction: Any, fato: DeGrupo, *, now: datetime) -> None: ...


class Chips(Protocol):
    async def ligacao(self, transaction: Any, fato: Ligacao, *, now: datetime) -> None: ...


class Central(Protocol):
    async def escrita(self, transaction: Any, fato: EscritaNaCentral, *, now: datetime) -> None: ...
    async def mudanca(self, transaction: Any, fato: MudancaNaCentral, *, now: datetime) -> None: ...


class Inbox:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def keep(self, delivery: EntregaDoWebhook) -> bool:
        """Store and commit a delivery. Returns False if the delivery is already stored."""
        values: dict[str, object] = {
            "canal": delivery.canal,
            "instance_name": delivery.instance,
            "evento": delivery.evento,
            "payload": AsJson(delivery.payload),
        }
        (id,) = await self._store.put([NewItem(values=values, key=f"{delivery.canal}:{delivery.chave}")])
        return id is not None


class InboxWork:
    """Processes stored webhook deliveries. ``read`` extracts the facts from a delivery. ``central`` handles the facts
    from the help desk; without it, they are ignored.
    """

    def __init__(
        self,
        read: Callable[[str, Json], Sequence[Fato]],
        conversas: Conversas,
        grupos: Grupos,
        chips: Chips,
        now: Callable[[], datetime],
        central: Central | None = None,
    ) -> None:
        self._read = read
        self._conversas = conversas
        self._grupos = grupos
        self._chips = chips
        self._now = now
        self._central = central

    def handler(self) -> ItemHandler:
        return ItemHandler(handle=self.handle, timeout=TIMEOUT, retry=RETRY, retry_timeout=True)

    async def handle(self, lease: Lease) -> Done:
        facts = self._read(lease.row["evento"], lease.row["payload"])

        async def write(transaction: Any) -> None:
            for fact in facts:
                await self._write(transaction, fact)

        ignored: list[Json] = [fact.why for fact in facts if isinstance(fact, Ignorado)]
        return Done(result={"fatos": len(facts) - len(ignored), "ignorados": ignored}, effect=write)

    async def _write(self, transaction: Any, fact: Fato) -> None:
        now = self._now()
        match fact:
            case Recebida():
                await self._conversas.recebida(transaction, fact, now=now)
            case Eco():
                await self._conversas.eco(transaction, fact, now=now)
            case Recibo():
                await self._conversas.recibo(transaction, fact, now=now)
            case DeGrupo():
                await self._grupos.ingerir(transaction, fact, now=now)
            case Ligacao():
                await self._chips.ligacao(transaction, fact, now=now)
            case EscritaNaCentral():
                if self._central is not None:
                    await self._central.escrita(transaction, fact, now=now)
            case MudancaNaCentral():
                if self._central is not None:
                    await self._central.mudanca(transaction, fact, now=now)
            case Ignorado():
                return
            case _:
                assert_never(fact)
