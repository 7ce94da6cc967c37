"""Block authors whose group messages contain no offers, and unblock them again."""

from collections.abc import Sequence
from datetime import datetime

from app.contexts.grupos.pessoas import Pessoas
from app.contexts.vagas.api import Chaves, VagaInexistente
from batuta import BatutaError
from batuta.kernel import Clock, Ids, Json, dataclass
from batuta.sql import AuditLog, Database, Query, Row, Transaction, load_queries


class SemAutor(BatutaError):
    sentence = "the author of vacancy {id} is unknown: reject the vacancy instead"


class AutorInexistente(BatutaError):
    sentence = "author {id} does not exist: `batuta grupos bloqueados` lists the blocked ones"


@dataclass(frozen=True, slots=True)
class AuthorQueries:
    blocked: Query
    author: Query
    known: Query
    block: Query
    lift: Query
    reject_waiting: Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Autor:
    """The result of blocking or unblocking an author. ``rejeitadas`` is how many of the author's vacancies in review
    the block rejected.
    """

    id: str
    bloqueado: bool
    rejeitadas: int = 0


class Autores:
    def __init__(self, database: Database, ids: Ids, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._audit = AuditLog(database.dialect, ids)
        self._chaves = Chaves(database.dialect)
        self._pessoas = Pessoas(database.dialect)
        self._queries = load_queries(AuthorQueries, "sql/autores.sql", database.dialect)

    async def bloqueados(self, *, limite: int, pular: int = 0) -> Sequence[Row]:
        return await self._database.all(self._queries.blocked, limite=limite, pular=pular)

    async def bloquear(self, vaga: str, *, por: str) -> Autor:
        """Block a vacancy's author under all of the author's addresses. Imported vacancies and other authors' vacancies
        stay unchanged.
        """
        now = self._clock.now()
        async with self._database.transaction() as transaction:
            row = await transaction.one(self._queries.author, vaga=vaga)
            if row is None:
                raise VagaInexistente(id=vaga)
            if row["id"] is None:
                raise SemAutor(id=vaga)
            id, ids = await self._person(transaction, row)
            rejected = 0
            if sum([await transaction.run(self._queries.block, id=each, por=por, now=now) for each in ids]):
                rejected = sum(
                    [await transaction.run(self._queries.reject_waiting, id=each, por=por, now=now) for each in ids]
                )
                for each in ids:
                    await self._chaves.do_autor(transaction, each, now)
                await self._note(transaction, por, "bloquear", id, {"vaga_grupo": vaga, "rejeitadas": rejected}, now)
        return Autor(id=id, bloqueado=True, rejeitadas=rejected)

    async def liberar(self, id: str, *, por: str) -> Autor:
        now = self._clock.now()
        async with self._database.transaction() as transaction:
            row = await transaction.one(self._queries.known, id=id)
            if row is None:
                raise AutorInexistente(id=id)
            _, ids = await self._person(transaction, row)
            if sum([await transaction.run(self._queries.lift, id=each) for each in ids]):
                await self._note(transaction, por, "liberar", id, {}, now)
        return Autor(id=id, bloqueado=False)

    async def _person(self, transaction: Transaction, contato: Row) -> tuple[str, list[str]]:
        """Return a contact's id, and the ids of all contacts of the same person, because a block applies to all of
        them.
        """
        same = await self._pessoas.mesma(transaction, contato["id"], contato["telefone"])
        return str(contato["id"]), [str(each["id"]) for each in same]

    async def _note(
        self, transaction: Transaction, by: str, action: str, id: str, after: dict[str, Json], now: datetime
    ) -> None:
        await self._audit.note(
            transaction,
            actor=by,
            action=f"contato.{action}",
            subject=f"contato:{id}",
            before=None,
            after=after,
            now=now,
        )
