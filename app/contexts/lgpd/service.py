"""Export all data about one person, or erase it and issue a receipt.

An erasure first stops all work for the person: it records the opt-out, cancels queued messages and parsing tasks, and
releases reserved shifts. In the same transaction, it erases the person's rows in every table (``dados_pessoais``). Rows
in use at that instant, such as a message that may or may not have been delivered, remain, and the request stays open;
``retomar`` continues it. A request is complete only when a count after the commit finds no rows.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any, Final
from zoneinfo import ZoneInfo

from app.contexts.comum.saude import report_count
from app.contexts.conversas.api import Diario, Resumos
from app.contexts.conversas.service import Conversas
from app.contexts.lgpd.comandos import Comando, comandos, last_digits, textos_livres, valores
from app.contexts.lgpd.mencoes import nome, numero, sem_numero
from app.contexts.lgpd.pessoa import Alvo, PessoaDesconhecida, Pessoas, alvo_de
from app.contexts.mensagens.service import Mensagens
from app.contexts.plantoes.api import Plantoes
from batuta import BatutaError
from batuta.health import QUEUES, Check, Report, Severity
from batuta.kernel import PLAIN, Clock, Encryption, Ids, Json, dataclass
from batuta.sql import AsJson, AuditLog, Database, Query, Reading, Row, Transaction, load_queries

LONGEST_MOTIVO: Final = 500
# Maximum number of passes. Each pass after the first erases data that arrived during the previous one. If data remains
# afterwards, the request stays open.
PASSES: Final = 3
MENCOES: Final = "mencoes"
CIFRADO: Final = "%sealed:v1.%"
# Placeholder until the count after the commit. It keeps the request open.
POR_CONFERIR: Final = {"conferencia": 1}
# A request that is open for longer is reported. Julia or an operator resolves messages in doubt within a day.
LATE_AFTER: Final = timedelta(days=1)


class PedidoDesconhecido(BatutaError):
    """Raised if no request to export or erase data has this id."""

    sentence = "there is no request with the id {id}: `batuta lgpd pedidos` lists them"


@dataclass(frozen=True, slots=True)
class RequestQueries:
    open_request: Query
    advance: Query
    open_erasures: Query
    one: Query
    recent: Query
    late: Query
    refuse_number: Query
    reserved: Query
    in_help_desk: Query
    cancel_tasks: Query


@dataclass(frozen=True, slots=True, kw_only=True)
class ReciboDoApagamento:
    """The result of an erasure. ``contagens`` counts the erased rows by table; ``restam`` counts the rows that remain
    because they are in use.
    """

    pedido: str
    completo: bool
    contagens: Mapping[str, int]
    restam: Mapping[str, int]
    na_central: Sequence[int] = ()  # conversations in the help desk, which an operator deletes there

    @property
    def linhas(self) -> int:
        return sum(self.contagens.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class LgpdParts:
    database: Database
    conversas: Conversas
    mensagens: Mensagens
    plantoes: Plantoes
    resumos: Resumos
    diario: Diario | None
    ids: Ids
    clock: Clock
    zone: ZoneInfo
    cifra: Encryption = PLAIN
    cifradas: Collection[str] = ()  # the encrypted columns, as table.column


class Lgpd:
    def __init__(self, parts: LgpdParts) -> None:
        self._parts = parts
        self._database = parts.database
        self._pessoas = Pessoas(parts.database, parts.cifra)
        dialect = parts.database.dialect
        self._audit = AuditLog(dialect, parts.ids)
        self._queries = load_queries(RequestQueries, "sql/lgpd.sql", dialect)
        self._comandos = comandos(dialect)
        self._livres = textos_livres(dialect)

    async def exportar(self, escrito: str, *, por: str, motivo: str) -> dict[str, Json]:
        """Return all data about one person, by table. The request is recorded. Raises PessoaDesconhecida if no table
        has data about the person.
        """
        alvo, now = await self._find(escrito), self._parts.clock.now()
        tables: dict[str, list[Json]] = {}
        async with self._database.snapshot() as reading:
            for each in self._comandos:
                if each.mostrar is None:
                    continue
                for row in await reading.all(each.mostrar, **valores(each.mostrar, alvo)):
                    tables.setdefault(each.tabela, []).append(self._row(each.tabela, row))
            mentions = await self._mentions(reading, alvo)
        id = self._parts.ids.new()
        async with self._database.transaction() as transaction:
            await self._record(transaction, id, "exportar", alvo, por, motivo, now, counts=_sizes(tables))
        return {
            "pedido": id,
            "gerado_em": now.astimezone(self._parts.zone).isoformat(),
            "pessoa": {"telefones": [*alvo.chaves], "ids": sorted(alvo.ids)},
            "tabelas": tables,
            # The export contains only counts of these texts, because they belong to other people.
            MENCOES: {name: len(texts) for name, texts in mentions.items()},
        }

    async def apagar(self, escrito: str, *, por: str, motivo: str) -> ReciboDoApagamento:
        """Erase all data about one person, or continue an open erasure of this person's data. Raises PessoaDesconhecida
        if no table has data about the person.
        """
        for row in await self._database.all(self._queries.open_erasures, limit=1000):
            if (known := alvo_de(row["alvo"])).has(escrito):
                return await self._continue(str(row["id"]), await self._pessoas.completar(known), row, por)
        alvo, id, now = await self._find(escrito), self._parts.ids.new(), self._parts.clock.now()
        async with self._database.transaction() as transaction:
            await self._record(transaction, id, "apagar", alvo, por, motivo, now)
        return await self._continue(id, alvo, {"contagens": {}}, por)

    async def retomar(self, limit: int) -> int:
        """Continue open erasures and return the number of erased rows. Then empty SQLite's write-ahead log, because the
        log may still contain data that an earlier erasure removed.
        """
        erased = 0
        for row in await self._database.all(self._queries.open_erasures, limit=limit):
            alvo = await self._pessoas.completar(alvo_de(row["alvo"]))
            done = await self._continue(str(row["id"]), alvo, row, row["por"])
            erased += done.linhas - sum(row["contagens"].values())
        await self._database.empty_log()
        return erased

    async def pedidos(self, *, limite: int) -> Sequence[Row]:
        return await self._database.all(self._queries.recent, limit=limite)

    async def pedido(self, id: str) -> Row:
        if (row := await self._database.one(self._queries.one, id=id)) is None:
            raise PedidoDesconhecido(id=id)
        return row

    async def ask(self) -> Report:
        row = await self._database.one(self._queries.late, before=self._parts.clock.now() - LATE_AFTER)
        assert row is not None
        return report_count(Severity.WARNING, "lgpd", "incompletos", row["items"], row["desde"], lost=2)

    @property
    def check(self) -> Check:
        """The health check that warns about erasures that are still open after a day. The usual cause is a message that
        may or may not have been sent, and about which an operator must decide.
        """
        return Check(name="lgpd", section=QUEUES, ask=self.ask)

    async def _find(self, escrito: str) -> Alvo:
        alvo = await self._pessoas.achar(escrito)
        async with self._database.snapshot() as reading:
            for each in self._comandos:
                if each.mostrar is not None and await reading.one(each.mostrar, **valores(each.mostrar, alvo)):
                    return alvo
        raise PessoaDesconhecida

    async def _continue(self, id: str, alvo: Alvo, row: Row | Mapping[str, Any], por: str) -> ReciboDoApagamento:
        counts, left = Counter[str](row["contagens"]), dict[str, int]()
        for _ in range(PASSES):
            counts, left, alvo = await self._pass(id, alvo, counts, por)
            if not left:
                break
        await self._database.empty_log()
        desk = await self._database.all(self._queries.in_help_desk, conversas=AsJson([*alvo.conversas]))
        copies = [int(each["id"]) for each in desk]
        return ReciboDoApagamento(pedido=id, completo=not left, contagens=dict(counts), restam=left, na_central=copies)

    async def _pass(
        self, id: str, alvo: Alvo, counts: Counter[str], por: str
    ) -> tuple[Counter[str], dict[str, int], Alvo]:
        """Erase one person's rows in one transaction. Then count the rows that remain, and store the numbers of erased
        and of remaining rows in the request.
        """
        now = self._parts.clock.now()
        async with self._database.snapshot() as reading:
            mentions = await self._mentions(reading, alvo)
        async with self._database.transaction() as transaction:
            counts = counts + await self._stop(transaction, id, alvo, por, now)
            counts = counts + await self._erase(transaction, alvo, now, last=False)
            if not await self._count_left(transaction, alvo, now, last=False):
                counts = counts + await self._erase(transaction, alvo, now, last=True)
            counts = counts + await self._mask(transaction, alvo, mentions)
            await self._advance(transaction, id, alvo, counts, POR_CONFERIR, now)
        # Another transaction may have added rows about the person in the meantime, so identify and count again.
        alvo = await self._pessoas.completar(alvo)
        async with self._database.snapshot() as reading:
            left = await self._count_left(reading, alvo, now, last=False) or await self._count_left(
                reading, alvo, now, last=True
            )
            if mentions := await self._mentions(reading, alvo, in_use=True):
                left[MENCOES] = sum(map(len, mentions.values()))
        async with self._database.transaction() as transaction:
            await self._advance(transaction, id, alvo, counts, left, now)
        return counts, left, alvo

    async def _stop(self, transaction: Transaction, id: str, alvo: Alvo, por: str, now: datetime) -> Counter[str]:
        """Stop the work for a person: record the opt-out of every number, cancel messages and parsing tasks, and
        release reserved shifts.
        """
        counts = Counter[str]()
        for cliente_id in alvo.medicos:
            await self._parts.mensagens.travar(transaction, cliente_id)
        for telefone in alvo.chaves:
            digest = await self._parts.resumos.settle(transaction, telefone, now=now)
            if await transaction.run(self._queries.refuse_number, digest=digest, now=now) and self._parts.diario:
                await self._parts.diario.note(transaction, "erasure", telefone, now=now)
        for cliente_id in alvo.medicos:
            origem = f"lgpd:{id}:{cliente_id}"
            counts["mensagens_canceladas"] += await self._parts.conversas.parar(
                transaction, cliente_id, origem=origem, now=now
            )
        for vaga in await transaction.all(self._queries.reserved, medicos=AsJson([*alvo.medicos])):
            await self._parts.plantoes.liberar_em(transaction, str(vaga["id"]), por=por, motivo="lgpd")
            counts["plantoes_liberados"] += 1
        await transaction.run(self._queries.cancel_tasks, tarefas=AsJson([*alvo.tarefas]), now=now)
        return counts

    async def _erase(self, transaction: Transaction, alvo: Alvo, now: datetime, *, last: bool) -> Counter[str]:
        counts = Counter[str]()
        for each in self._group(last=last):
            if each.apagar is not None:
                counts[each.tabela] += await transaction.run(each.apagar, **valores(each.apagar, alvo, now=now))
        return counts

    async def _count_left(self, reading: Reading, alvo: Alvo, now: datetime, *, last: bool) -> dict[str, int]:
        """Count, by table, the person's rows that are not erased yet."""
        left = Counter[str]()
        for each in self._group(last=last):
            if each.restam is not None:
                row = await reading.one(each.restam, **valores(each.restam, alvo, now=now))
                left[each.tabela] += 0 if row is None else int(row["items"])
        return {table: items for table, items in left.items() if items}

    def _group(self, *, last: bool) -> list[Comando]:
        return [each for each in self._comandos if each.por_ultimo is last]

    async def _mentions(
        self, reading: Reading, alvo: Alvo, *, in_use: bool = False
    ) -> dict[str, list[tuple[str, str | AsJson]]]:
        """Return, by column, the free texts that contain one of the person's numbers. Each text is returned as stored
        and with the number replaced. If ``in_use`` is true, return only texts in rows that are in use now, otherwise
        only texts in the other rows.
        """
        found: dict[str, list[tuple[str, str | AsJson]]] = {}
        if not alvo.chaves:
            return found
        number, name = numero(alvo.chaves), nome(alvo.escritos)
        for each in self._livres:
            about = f"{each.tabela}.{each.coluna}"
            change = partial(sem_numero, number=number, name=name)
            ends = {last_digits(chave) for chave in alvo.chaves}
            if about in self._parts.cifradas:  # the database cannot search an encrypted text
                ends.add(CIFRADO)
                change = partial(self._parts.cifra.change, about=about, change=change)
            for end in ends:
                for row in await reading.all(each.ocupados if in_use else each.achar, last=end):
                    if (masked := change(row[each.coluna])) != row[each.coluna]:
                        # In a text column the stored form is the text itself. A JSON column encodes the text.
                        new = str(masked) if row["said"] == row[each.coluna] else AsJson(masked)
                        found.setdefault(about, []).append((row["said"], new))
        return found

    def _row(self, tabela: str, row: Row) -> dict[str, Json]:
        """Return a row in its exported form: decrypted, and without empty columns."""
        shown = {name: _value(row[name], self._parts.zone) for name in row.keys() if row[name] is not None}  # noqa: SIM118
        return {name: self._parts.cifra.read(value, f"{tabela}.{name}") for name, value in shown.items()}

    async def _mask(
        self, transaction: Transaction, alvo: Alvo, mentions: Mapping[str, Sequence[tuple[str, str | AsJson]]]
    ) -> Counter[str]:
        counts = Counter[str]()
        for each in self._livres:
            for said, new in dict(mentions.get(f"{each.tabela}.{each.coluna}", ())).items():
                counts[MENCOES] += await transaction.run(each.trocar, new=new, said=said)
        return counts

    async def _record(
        self,
        transaction: Transaction,
        id: str,
        tipo: str,
        alvo: Alvo,
        por: str,
        motivo: str,
        now: datetime,
        counts: Mapping[str, int] | None = None,
    ) -> None:
        """Store a request to export or erase data, and record it in the audit log. The person's identifiers are stored
        only for an erasure.
        """
        is_done = tipo == "exportar"
        await transaction.run(
            self._queries.open_request,
            id=id,
            tipo=tipo,
            digests=AsJson(await self._digests(transaction, alvo, now)),
            alvo=AsJson(None if is_done else alvo.em_json()),
            por=por,
            motivo=motivo[:LONGEST_MOTIVO],
            contagens=AsJson(dict(counts or {})),
            restam=AsJson({}),
            concluido_em=now if is_done else None,
            now=now,
        )
        await self._audit.note(transaction, actor=por, action=f"lgpd.{tipo}", subject=f"pedido:{id}", now=now)

    async def _advance(
        self,
        transaction: Transaction,
        id: str,
        alvo: Alvo,
        counts: Mapping[str, int],
        left: Mapping[str, int],
        now: datetime,
    ) -> None:
        await transaction.run(
            self._queries.advance,
            id=id,
            digests=AsJson(await self._digests(transaction, alvo, now)),
            alvo=AsJson(alvo.em_json() if left else None),
            contagens=AsJson({name: items for name, items in counts.items() if items}),
            restam=AsJson(dict(left)),
            concluido_em=None if left else now,
            now=now,
        )

    async def _digests(self, transaction: Transaction, alvo: Alvo, now: datetime) -> list[Json]:
        return [await self._parts.resumos.settle(transaction, each, now=now) for each in alvo.chaves]


def _sizes(tables: Mapping[str, Sequence[Json]]) -> dict[str, int]:
    return {name: len(rows) for name, rows in tables.items()}


def _value(value: Any, zone: ZoneInfo) -> Json:
    match value:
        case datetime():
            return value.astimezone(zone).isoformat()
        case date():
            return value.isoformat()
        case str() | bool() | int() | float() | list() | dict():
            return value
        case _:
            return str(value)
