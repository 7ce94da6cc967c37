"""Ask the authors of incomplete offers for the missing fields. One message covers all of an author's offers, and an
author gets at most one message a day.

The message is queued in the transaction that marks the offers as asked, so that a crash leaves both or neither. The
sender checks every rule again before it sends the message.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from typing import Any, Final
from zoneinfo import ZoneInfo

from app.contexts.comum.fila import Fila
from app.contexts.comum.telefone import chave, telefone_de
from app.contexts.comum.texto import chamado
from app.contexts.grupos.pessoas import Pessoas
from app.contexts.mensagens.api import NovaMensagem, Tipo
from batuta import Done, Outcome
from batuta.jobs import JobCall
from batuta.kernel import Clock, Ids, dataclass
from batuta.queues import NewItem
from batuta.sql import AsJson, Database, Query, Row, Transaction, load_queries

CAMPOS: Final = {
    "hospital": "o hospital",
    "especialidade": "a especialidade",
    "data": "o dia",
    "horario": "o horário",
    "valor": "o valor",
}
NOMEADAS: Final = 5
LONGEST: Final = 60
TEXTO: Final = (
    "Oi{nome}! Aqui é a Julia. Vi no grupo o que você anunciou e quero divulgar certinho, mas faltou dizer:\n{linhas}\n"
    "Pode me contar por aqui? Se preferir que eu não escreva mais, é só responder PARAR."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Falta:
    """An offer's missing fields, and the known fields by which the author recognises the offer."""

    campos: tuple[str, ...]
    hospital: str | None = None
    especialidade: str | None = None
    data: date | None = None
    periodo: str | None = None

    @property
    def resumo(self) -> str:
        parts = (self.hospital, self.especialidade, None if self.data is None else f"{self.data:%d/%m}", self.periodo)
        return ", ".join(" ".join(each.split())[:LONGEST] for each in parts if each)


def pergunta(nome: str | None, faltas: Sequence[Falta]) -> str:
    """Write the question to an author. Offers that lack the same fields share one line."""
    asked: dict[tuple[str, ...], list[str]] = {}
    for each in faltas:
        missing = tuple(CAMPOS[name] for name in CAMPOS if name in each.campos)
        asked.setdefault(missing, []).append(each.resumo)
    lines = "\n".join(f"• {_enumerado(missing)}{_quais(which)}" for missing, which in asked.items())
    return TEXTO.format(nome=chamado(nome), linhas=lines)


def _enumerado(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} e {names[-1]}"


def _quais(which: Sequence[str]) -> str:
    names = list(dict.fromkeys(each for each in which if each))
    if not names:
        return ""
    more = f" e mais {len(names) - NOMEADAS}" if len(names) > NOMEADAS else ""
    return f" ({'; '.join(names[:NOMEADAS])}{more})"


PESSOAS: Final = 20
# Maximum number of addresses to read. One person may have two addresses in groups: a number and a hidden id.
ADDRESSES: Final = 3 * PESSOAS
TIPO: Final = Tipo.RECUPERACAO


@dataclass(frozen=True, slots=True)
class RecoveryQueries:
    no_phone: Query
    people: Query
    waiting: Query
    hold: Query
    asked: Query
    lacking: Query
    stamp: Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Pessoa:
    """The author of incomplete offers, with all addresses that this person uses in groups."""

    telefone: str
    nome: str | None
    contatos: tuple[str, ...]


class Recuperacao:
    def __init__(self, database: Database, fila: Fila, ids: Ids, zone: ZoneInfo, clock: Clock) -> None:
        self._database = database
        self._fila = fila
        self._ids = ids
        self._zone = zone
        self._clock = clock
        self._pessoas = Pessoas(database.dialect)
        self._queries = load_queries(RecoveryQueries, "sql/recuperacao.sql", database.dialect)

    async def recovery_vagas_incompletas(self, call: JobCall) -> Outcome:
        """Ask at most twenty authors for the missing fields of their offers. If earlier questions are still queued, ask
        fewer authors.
        """
        now = self._clock.now()
        unknown = await self._database.run(self._queries.no_phone, now=now)
        hoje = now.astimezone(self._zone).date()
        waiting = await self._database.one(self._queries.waiting)
        room = PESSOAS - (0 if waiting is None else int(waiting["items"]))
        found = {"perguntada": 0, "recusada": 0, "falhou": 0}
        asked = 0
        for pessoa in await self._people(hoje):
            if asked >= room:
                break
            status, vagas = await self._ask(pessoa, hoje)
            found[status] += vagas
            asked += bool(vagas) and status == "perguntada"
        return Done(
            items=asked,
            result={
                "vagas_encontradas": sum(found.values()) + unknown,
                "dms_enfileirados": asked,
                "sem_telefone": unknown,
                "recusadas": found["recusada"],
                "erros": found["falhou"],
            },
        )

    async def _people(self, hoje: date) -> list[Pessoa]:
        rows = await self._database.all(self._queries.people, hoje=hoje, desde=self._midnight(hoje), limite=ADDRESSES)
        apart: dict[str, list[Row]] = {}
        for row in rows:
            apart.setdefault(chave(row["telefone"]), []).append(row)
        return [
            Pessoa(telefone=same[0]["telefone"], nome=same[0]["nome"], contatos=tuple(str(row["id"]) for row in same))
            for same in apart.values()
        ]

    async def _ask(self, pessoa: Pessoa, hoje: date) -> tuple[str, int]:
        """Queue the question about missing fields to one author. Return the result and the number of vacancies in the
        question.

        The number is zero if another process has already asked, or if an operator has decided about the vacancies.
        """
        now = self._clock.now()
        async with self._database.transaction() as transaction:
            if telefone_de(pessoa.telefone) != pessoa.telefone:
                return "falhou", await self._stamp(transaction, pessoa, hoje, "falhou", now)
            if not await self._pessoas.pode_receber(transaction, pessoa.telefone):
                return "recusada", await self._stamp(transaction, pessoa, hoje, "recusada", now)
            cliente_id = await self._find_or_create(transaction, pessoa, now)
            since = self._midnight(hoje)
            if await transaction.one(self._queries.asked, cliente_id=cliente_id, desde=since) is not None:
                return "perguntada", 0
            vagas = await self._lacking(transaction, pessoa, hoje)
            if not vagas:
                return "perguntada", 0
            (id,) = await self._fila.put([_item(pessoa, cliente_id, vagas, hoje, now)], within=transaction)
            if id is None:
                return "perguntada", 0
            for vaga in vagas:
                await transaction.run(self._queries.stamp, id=vaga["id"], status="perguntada", mensagem_id=id, now=now)
        return "perguntada", len(vagas)

    async def _find_or_create(self, transaction: Transaction, pessoa: Pessoa, now: datetime) -> str:
        """Return the id of the author's row, and create the row if it does not exist. The row stays locked, so that two
        processes cannot ask the author at the same time.
        """
        id = await self._pessoas.achar_ou_criar(transaction, pessoa.telefone, pessoa.nome, self._ids, now=now)
        await transaction.run(self._queries.hold, id=id)
        return id

    async def _lacking(self, transaction: Transaction, pessoa: Pessoa, hoje: date) -> Sequence[Row]:
        return await transaction.all(self._queries.lacking, contatos=AsJson([*pessoa.contatos]), hoje=hoje)

    async def _stamp(self, transaction: Transaction, pessoa: Pessoa, hoje: date, status: str, now: datetime) -> int:
        vagas = await self._lacking(transaction, pessoa, hoje)
        for vaga in vagas:
            await transaction.run(self._queries.stamp, id=vaga["id"], status=status, mensagem_id=None, now=now)
        return len(vagas)

    def _midnight(self, hoje: date) -> datetime:
        return datetime.combine(hoje, time(), self._zone)


def _item(pessoa: Pessoa, cliente_id: str, vagas: Sequence[Row], hoje: date, now: datetime) -> NewItem:
    return NovaMensagem(
        tipo=TIPO,
        cliente_id=cliente_id,
        telefone=pessoa.telefone,
        texto=pergunta(pessoa.nome, [_falta(vaga) for vaga in vagas]),
        chave=f"{TIPO}:{cliente_id}:{hoje.isoformat()}",
    ).item(now=now)


def _falta(vaga: Row | Mapping[str, Any]) -> Falta:
    return Falta(
        campos=tuple(vaga["campos_faltando"]),
        hospital=vaga["hospital_raw"],
        especialidade=vaga["especialidade_raw"],
        data=vaga["data"],
        periodo=vaga["periodo_raw"],
    )
