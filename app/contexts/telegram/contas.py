"""Telegram accounts: their states, their positions in the stream of updates, and the waits that Telegram demands."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from app.contexts.telegram.porta import Metodo
from batuta import BatutaError
from batuta.kernel import Clock, Ids, dataclass
from batuta.queues import LONGEST_ERROR
from batuta.reasons import decode, encode
from batuta.sql import AuditLog, Database, Query, Reading, Row, Transaction, load_queries

HOUR = timedelta(hours=1)


class EstadoDaConta(StrEnum):
    ATIVA = "ativa"
    PAUSADA = "pausada"
    REVOGADA = "revogada"
    BANIDA = "banida"
    REMOVIDA = "removida"


class SemConta(BatutaError):
    sentence = "no Telegram account is called {nome}; `batuta telegram status` lists the accounts"


class ContaAtiva(NamedTuple):
    """An account that the worker keeps connected. Telegram accepts a connection only after ``connect_after``, and a probe
    only after ``probe_after``.
    """

    id: str
    nome: str
    marca: str | None
    connect_after: datetime | None = None
    probe_after: datetime | None = None


class Espera(NamedTuple):
    """A wait that Telegram demands. Until ``ate``, Telegram refuses one account's calls to one method."""

    ate: datetime
    motivo: str


@dataclass(frozen=True, slots=True)
class AccountQueries:
    accounts: Query
    active: Query
    account: Query
    state: Query
    retire: Query
    delete_session: Query
    add: Query
    change: Query
    connected: Query
    answered: Query
    lost: Query
    advance: Query
    wait: Query
    waiting: Query


class Contas:
    def __init__(self, database: Database, ids: Ids, clock: Clock) -> None:
        self._database = database
        self._ids = ids
        self._clock = clock
        self._audit = AuditLog(database.dialect, ids)
        self._queries = load_queries(AccountQueries, "sql/contas.sql", database.dialect)

    @property
    def where(self) -> str:
        """The address of the database that stores the accounts, for error messages."""
        return self._database.where

    async def adicionar(self, nome: str, *, telefone: str | None = None, usuario_id: int | None = None, by: str) -> str:
        """Add a Telegram account, or reactivate the account with the name ``nome``. Return its id.

        If the name is in use for a different Telegram user, the old account is marked as removed and keeps its
        messages. Two users cannot share an account, because Telegram numbers each user's messages from 1.
        """
        now = self._clock.now()
        async with self._database.transaction() as transaction:
            await self._remove_other_user(transaction, nome, usuario_id, by, now)
            values = {"telefone": telefone, "usuario_id": usuario_id}
            await transaction.run(self._queries.add, id=self._ids.new(), nome=nome, **values, now=now)
            row = await transaction.one(self._queries.account, nome=nome)
            assert row is not None
            await self._note(transaction, str(row["id"]), EstadoDaConta.ATIVA, by, now)
            return str(row["id"])

    async def _remove_other_user(
        self, transaction: Transaction, nome: str, usuario_id: int | None, by: str, now: datetime
    ) -> None:
        row = await transaction.one(self._queries.retire, nome=nome, usuario_id=usuario_id, now=now)
        if row is not None:
            await transaction.run(self._queries.delete_session, conta_id=row["id"])
            await self._note(transaction, str(row["id"]), EstadoDaConta.REMOVIDA, by, now)

    async def listar(self) -> list[Row]:
        now = self._clock.now()
        return await self._database.all(self._queries.accounts, hour_ago=now - HOUR, now=now)

    async def ativas(self) -> Sequence[ContaAtiva]:
        rows = await self._database.all(self._queries.active)
        return [
            ContaAtiva(str(row["id"]), row["nome"], row["marca"], row["connect_after"], row["probe_after"])
            for row in rows
        ]

    async def conta(self, nome: str) -> str:
        """Return the id of the Telegram account with a given name or id."""
        row = await self._database.one(self._queries.account, nome=nome)
        if row is None:
            raise SemConta(nome=nome)
        return str(row["id"])

    async def estado(self, reading: Reading, id: str) -> EstadoDaConta | None:
        row = await reading.one(self._queries.state, id=id)
        return None if row is None else EstadoDaConta(row["estado"])

    async def mudar(self, id: str, estado: EstadoDaConta, *, by: str, erro: str | None = None) -> bool:
        """Change the state of an account. Returns False if the account already has this state."""
        now = self._clock.now()
        async with self._database.transaction() as transaction:
            values = {"estado": estado.value, "erro": encode(erro, LONGEST_ERROR)}
            if not await transaction.run(self._queries.change, id=id, **values, now=now):
                return False
            await self._note(transaction, id, estado, by, now)
        return True

    async def conectada(self, id: str) -> None:
        await self._write(self._queries.connected, id=id, now=self._clock.now())

    async def respondeu(self, id: str, usuario_id: int | None) -> None:
        await self._write(self._queries.answered, id=id, usuario_id=usuario_id, now=self._clock.now())

    async def caiu(self, id: str, erro: str) -> None:
        await self._write(self._queries.lost, id=id, erro=encode(erro, LONGEST_ERROR), now=self._clock.now())

    async def avancar(self, transaction: Transaction, id: str, marca: str, *, is_news: bool) -> None:
        await transaction.run(self._queries.advance, id=id, marca=marca, is_news=is_news, now=self._clock.now())

    async def esperar(self, id: str, metodo: Metodo, ate: datetime, motivo: str) -> None:
        """Record that the account must not call a method before a given time. If a longer wait is already stored, it is
        kept.
        """
        values = {"metodo": metodo.value, "ate": ate, "motivo": encode(motivo, LONGEST_ERROR)}
        await self._write(self._queries.wait, conta_id=id, **values, now=self._clock.now())

    async def espera(self, reading: Reading, id: str, metodo: Metodo) -> Espera | None:
        row = await reading.one(self._queries.waiting, conta_id=id, metodo=metodo.value, now=self._clock.now())
        return None if row is None else Espera(row["ate"], decode(row["motivo"]) or "")

    async def _write(self, query: Query, **values: object) -> None:
        async with self._database.transaction() as transaction:
            await transaction.run(query, **values)

    async def _note(self, transaction: Transaction, id: str, estado: EstadoDaConta, by: str, now: datetime) -> None:
        await self._audit.note(
            transaction, actor=by, action="telegram.conta", subject=id, before=None, after=estado.value, now=now
        )
