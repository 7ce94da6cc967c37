"""Query a language model through its circuit breaker and rate limit, within a daily budget.

``uma_vez`` sends the same question only once and stores the answer for all callers. ``responder`` queries the model for
one caller and stores only the cost.
"""

import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import datetime, time, timedelta
from typing import Any, Final, Protocol, TypeAlias
from zoneinfo import ZoneInfo

from batuta import Snooze
from batuta.guards import WORKED, EffectReport, Guard, Hold
from batuta.kernel import Clock, Ids, Json, dataclass, json_object
from batuta.reasons import define
from batuta.sql import AsJson, Database, Query, load_queries

ASKED_ALREADY = define("llm_perguntado", "another process is asking the model the same question")
MODEL_SILENT = define("llm_sem_resposta", "the model did not answer: {error}")
MODEL_HELD = define("llm_suspenso", "calls to the model are held: {why}")

LARGEST: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Pergunta:
    """A query to the model: a fixed instruction, the data, and the answer's schema."""

    instrucao: str
    dados: str
    schema: Mapping[str, Any]


def entre_marcas(texto: str) -> str:
    """Enclose the text in random marks. Instructions inside the text cannot imitate the marks, because they are
    unpredictable.
    """
    mark = secrets.token_hex(8)
    return f"{mark}\n{texto}\n{mark}"


@dataclass(frozen=True, slots=True)
class Respondeu:
    """The model's answer. ``documento`` is None if the answer cannot be parsed."""

    documento: Json
    entrada: int = 0
    saida: int = 0


def legivel(documento: Json) -> Json:
    """Return the object if SQLite and PostgreSQL can both store it unchanged. Return None for any other value, such as
    an object with infinite numbers or invalid characters.
    """
    if not isinstance(documento, Mapping):
        return None
    return documento if json_object(documento, LARGEST) == documento else None


@dataclass(frozen=True, slots=True)
class Calou:
    """Result: the query got no answer. ``report`` is the report for the circuit breaker."""

    report: EffectReport


Resposta: TypeAlias = Respondeu | Calou


class Llm(Protocol):
    async def perguntar(self, instrucao: str, dados: str, schema: Mapping[str, Any]) -> Resposta: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Precos:
    """Prices in dollars per million tokens, and the daily budget in dollars."""

    entrada: float
    saida: float
    por_dia: float

    def de(self, resposta: Respondeu) -> float:
        return (resposta.entrada * self.entrada + resposta.saida * self.saida) / 1_000_000


# A question's reservation that is older than this has expired: its process has died.
ASKING: Final = timedelta(seconds=90)
SOON: Final = timedelta(seconds=3)
LATER: Final = timedelta(minutes=1)
# How long the known cost of other processes is reused. The cost of this process counts immediately.
SPENT_FOR: Final = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class ModelQueries:
    known: Query
    ask: Query
    answered: Query
    unanswered: Query
    spent: Query


@dataclass(frozen=True, slots=True)
class Gasto:
    """Number of queries to the language model, and their cost in dollars."""

    perguntas: int = 0
    custo: float = 0.0


@dataclass(frozen=True, slots=True)
class SemVerba:
    """Result: no query was sent, because the daily budget is spent. The next query is possible after midnight."""


Dito: TypeAlias = Respondeu | Calou | Hold | SemVerba


async def _nothing() -> None:
    return None


class Custos:
    """Reads what queries have cost. ``uso`` is the feature that sends the queries, or None for all features."""

    def __init__(self, database: Database, clock: Clock, uso: str | None = None) -> None:
        self._database = database
        self._clock = clock
        self._uso = uso
        self._queries = load_queries(ModelQueries, "sql/consulta.sql", database.dialect)

    async def desde(self, since: datetime) -> float:
        return (await self.no_dia(since, self._clock.now() + timedelta(days=1))).custo

    async def no_dia(self, since: datetime, until: datetime) -> Gasto:
        uso = self._uso or ""
        row = await self._database.one(self._queries.spent, since=since, until=until, uso_any=not uso, uso=uso)
        return Gasto() if row is None else Gasto(row["perguntas"], float(row["custo"]))


class Consulta:
    def __init__(
        self,
        database: Database,
        llm: Llm,
        nome: str,
        guarda: Guard,
        precos: Precos,
        zone: ZoneInfo,
        ids: Ids,
        clock: Clock,
    ) -> None:
        """Create the service that queries the language model. ``nome`` is the model's name at its provider."""
        self.nome = nome
        self._database = database
        self._llm = llm
        self._guarda = guarda
        self._precos = precos
        self._zone = zone
        self._ids = ids
        self._clock = clock
        self._custos = Custos(database, clock)
        self._spent: tuple[datetime, datetime, float] | None = None  # day, time of reading, dollars
        self._queries = load_queries(ModelQueries, "sql/consulta.sql", database.dialect)

    async def uma_vez(self, uso: str, chave: str, pergunta: Pergunta) -> Json | Snooze:
        """Return the stored answer to this query. If there is none, query the model and store its answer. Return None
        if the daily budget is spent.
        """
        now = self._clock.now()
        known = await self._database.one(self._queries.known, chave=chave)
        if known is not None and known["resposta"] is not None:
            return known["resposta"]  # type: ignore[no-any-return]
        if not await self._can_pay(now):
            return None
        before = now - ASKING
        if not await self._database.run(
            self._queries.ask, chave=chave, uso=uso, modelo=self.nome, now=now, before=before
        ):
            return Snooze(SOON, ASKED_ALREADY())
        try:
            return await self._ask_and_keep(uso, chave, pergunta)
        except BaseException:
            await self._database.run(self._queries.unanswered, chave=chave)
            raise

    async def responder(self, uso: str, pergunta: Pergunta, began: Callable[[], Awaitable[None]] = _nothing) -> Dito:
        """Query the language model, and store the cost but not the answer. ``began`` is called after the query is
        admitted and before it is sent.
        """
        if not await self._can_pay(self._clock.now()):
            return SemVerba()
        said = await self._ask(pergunta, began)
        if isinstance(said, Respondeu):
            await self._pay(uso, self._ids.new(), said, {})
        return said

    async def _ask_and_keep(self, uso: str, chave: str, pergunta: Pergunta) -> Json | Snooze:
        match await self._ask(pergunta, _nothing):
            case Hold(until=until, reason=reason):
                await self._database.run(self._queries.unanswered, chave=chave)
                return Snooze(until, MODEL_HELD(why=reason))
            case Calou(report=report):
                await self._database.run(self._queries.unanswered, chave=chave)
                return Snooze(report.retry_at or LATER, silence_reason(report))
            case Respondeu(documento=document) as said:
                # Store an unreadable answer too, because another query would cost again and give the same answer.
                kept = {} if document is None else document
                await self._pay(uso, chave, said, kept)
                return kept

    async def _ask(self, pergunta: Pergunta, began: Callable[[], Awaitable[None]]) -> Respondeu | Calou | Hold:
        admitted = await self._guarda.admit(self._clock.now())
        if isinstance(admitted, Hold):
            return admitted
        await began()
        said = await self._llm.perguntar(pergunta.instrucao, pergunta.dados, pergunta.schema)
        await admitted.ticket.report(said.report if isinstance(said, Calou) else WORKED)
        return replace(said, documento=legivel(said.documento)) if isinstance(said, Respondeu) else said

    async def _pay(self, uso: str, chave: str, said: Respondeu, kept: Json) -> None:
        cost = self._precos.de(said)
        await self._database.run(
            self._queries.answered, chave=chave, uso=uso, modelo=self.nome, resposta=AsJson(kept), now=self._clock.now(),
            entrada=said.entrada, saida=said.saida, custo=cost,
        )  # fmt: skip
        if self._spent is not None:
            day, seen, spent = self._spent
            self._spent = (day, seen, spent + cost)

    async def _can_pay(self, now: datetime) -> bool:
        midnight = datetime.combine(now.astimezone(self._zone).date(), time(0), self._zone)
        if self._spent is None or self._spent[0] != midnight or not timedelta(0) <= now - self._spent[1] < SPENT_FOR:
            self._spent = (midnight, now, await self._custos.desde(midnight))
        return self._spent[2] < self._precos.por_dia


def silence_reason(report: EffectReport) -> str:
    return MODEL_SILENT(error=report.error)
