"""Process closing notices: close the vacancies that are taken, or let an operator decide to which vacancy the notice
refers.

A notice also rejects a matching offer in review, because a taken vacancy needs no decision. For each closed vacancy,
the audit log records who closed it, the reason and the message.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from app.contexts.comum.ids import id_de
from app.contexts.leitura_grupos.api import Fechamento, VagaLida, chave
from app.contexts.nomes.api import Dicionario
from app.contexts.vagas.alvo_do_fechamento import NADA, Alvo, DecisaoDoFechamento, VagaAberta, decidir
from app.contexts.vagas.importacao import PERIODO_ID
from app.contexts.vagas.transicoes import PROCURA, StatusDaVaga, Transicoes
from batuta import BatutaError, Snooze
from batuta.kernel import Clock, Ids, Json, dataclass
from batuta.queues import Writes
from batuta.reasons import define
from batuta.sql import AsJson, AuditLog, Database, Query, Row, Transaction, load_queries

EARLIER_UNREAD = define("anterior_nao_lida", "an earlier message from the same group has not been read yet")

SOON: Final = timedelta(seconds=30)
# Unread messages that are older than this do not delay a notice.
WAITED_FOR: Final = timedelta(hours=1)
# A quoted message may arrive later through another chip. After this time, the message is assumed to be older than the
# chip's membership in the group.
ARRIVES: Final = timedelta(minutes=5)
MAQUINA: Final = "grupos"


class FechamentoInexistente(BatutaError):
    sentence = "notice {id} does not exist: `batuta grupos fechamentos` lists those in review"


class FechamentoDecidido(BatutaError):
    sentence = "notice {id} is already decided (status: {status}): `batuta grupos fechamentos` lists those in review"


class VagaDeOutro(BatutaError):
    sentence = "vacancy {vaga} is not a candidate of notice {id}: `batuta grupos fechamentos` lists its candidates"


@dataclass(frozen=True, slots=True)
class ClosingQueries:
    unread: Query
    quoted: Query
    open_in_group: Query
    vacancies: Query
    reject: Query
    reject_change: Query
    free_key: Query
    add: Query
    waiting: Query
    one: Query
    candidates: Query
    decide: Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Fechado:
    """The result of an operator's decision about a closing notice. ``status`` is ``fechada``, or ``mantida`` if the
    notice closes nothing.
    """

    id: str
    status: str
    vagas: tuple[str, ...] = ()


class Fechamentos:
    def __init__(self, database: Database, dicionario: Dicionario, ids: Ids, clock: Clock) -> None:
        self._database = database
        self._dicionario = dicionario
        self._clock = clock
        self._audit = AuditLog(database.dialect, ids)
        self._transicoes = Transicoes(database.dialect, ids)
        self._queries = load_queries(ClosingQueries, "sql/fechamentos.sql", database.dialect)

    async def de(self, mensagem: Row, dito: Fechamento | None) -> DecisaoDoFechamento | Snooze:
        """Decide which vacancies a closing notice closes. If an earlier message, which may contain the offer, has not
        been read yet, return a Snooze, which postpones the notice.
        """
        if dito is None:
            return NADA
        em, group = mensagem["timestamp_msg"], mensagem["grupo_id"]
        if (early := await self.cedo(mensagem)) is not None:
            return early
        rows = await self._database.all(
            self._queries.open_in_group, grupo_id=group, mensagem_id=mensagem["id"], em=em
        )  # fmt: skip
        if not rows:
            return NADA
        abertas = [VagaAberta(**{name: row[name] for name in VagaAberta.__slots__}) for row in rows]
        alvos = await self._alvos(dito, mensagem["regiao"])
        return decidir(dito, alvos, abertas, citada=mensagem["citada"], autor=mensagem["contato_id"])

    async def cedo(self, mensagem: Row) -> Snooze | None:
        """Return a Snooze, which postpones a group message, if the offer to which the message refers may still arrive.
        Return None if the message can be read now.
        """
        is_early = await self._is_early(mensagem, self._clock.now())
        return Snooze(SOON, EARLIER_UNREAD()) if is_early else None

    async def _is_early(self, mensagem: Row, now: datetime) -> bool:
        """Return whether the message that a group message quotes has not yet arrived, or an earlier message is still in
        the pipeline.
        """
        quoted = mensagem["citada"]
        is_fresh = quoted is not None and now - mensagem["created_at"] < ARRIVES
        if is_fresh and await self._database.one(self._queries.quoted, citada=quoted) is None:
            return True
        earlier = await self._database.one(
            self._queries.unread, grupo_id=mensagem["grupo_id"], mensagem_id=mensagem["id"], em=mensagem["timestamp_msg"],
            since=now - WAITED_FOR, citada=quoted or "",
        )  # fmt: skip
        return earlier is not None

    def feito(
        self, mensagem: Row, dito: Fechamento, decisao: DecisaoDoFechamento, junto: Writes
    ) -> Callable[[Transaction], Awaitable[None]]:
        """Return the effect of a closing notice: a function that runs the statements in ``junto``, closes the vacancies
        and stores the notice.
        """

        async def effect(transaction: Transaction) -> None:
            now = self._clock.now()
            for query, values in junto.statements:
                await transaction.run(query, **values)
            closed = await self._close(transaction, decisao.fecha, MAQUINA, decisao.como, mensagem["id"], now)
            kept = {
                "mensagem_id": mensagem["id"], "grupo_id": mensagem["grupo_id"], "trecho": AsJson(list(dito.trecho)), "now": now,
            }  # fmt: skip
            if closed:
                notice = {
                    "id": id_de("fechamento", mensagem["id"]),
                    "status": "fechada",
                    "como": decisao.como,
                    "motivo": None,
                }
                listed = {"fechadas": AsJson([*closed]), "candidatas": AsJson([*decisao.fecha])}
                await transaction.run(self._queries.add, **kept, **notice, **listed)
            if decisao.duvida:
                asked = {"id": id_de("duvida", mensagem["id"]), "status": "aguardando_revisao", "como": None}
                listed = {"fechadas": AsJson([]), "candidatas": AsJson([*decisao.duvida])}
                await transaction.run(self._queries.add, **kept, **asked, **listed, motivo=decisao.motivo)

        return effect

    async def pendentes(
        self, *, limite: int, pular: int = 0, status: str = "aguardando_revisao"
    ) -> list[tuple[Row, Sequence[Row]]]:
        """List closing notices, each with the vacancies that it closed or may close."""
        rows = await self._database.all(self._queries.waiting, limite=limite, pular=pular, status=status)
        return [
            (row, await self._database.all(self._queries.candidates, ids=AsJson([*row["candidatas"]]))) for row in rows
        ]

    async def resolver(self, id: str, vagas: Sequence[str], *, por: str) -> Fechado:
        """Close the vacancies in ``vagas``, which an operator chose from those that a closing notice may mean. If
        ``vagas`` is empty, no vacancy is closed.
        """
        now = self._clock.now()
        async with self._database.transaction() as transaction:
            row = await transaction.one(self._queries.one, id=id)
            if row is None:
                raise FechamentoInexistente(id=id)
            for vaga in vagas:
                if vaga not in row["candidatas"]:
                    raise VagaDeOutro(id=id, vaga=vaga)
            status = "fechada" if vagas else "mantida"
            taken = await transaction.run(
                self._queries.decide, id=id, status=status, como="pessoa", fechadas=AsJson([*vagas]), por=por, now=now
            )
            if not taken:
                raise FechamentoDecidido(id=id, status=row["status"])
            closed = await self._close(transaction, tuple(vagas), por, "pessoa", id, now)
            if not vagas:
                await self._note(transaction, por, "fechamento.manter", f"fechamento:{id}", {"status": status}, now)
        return Fechado(id=id, status=status, vagas=closed)

    async def _close(
        self, transaction: Transaction, vagas: Sequence[str], by: str, how: str | None, because: str, now: datetime
    ) -> tuple[str, ...]:
        """Close those vacancies in ``vagas`` that are open, and reject those in review. Return the ids of the changed
        vacancies.
        """
        closed = []
        for id in vagas:
            waited = await transaction.run(self._queries.reject, id=id, por=by, now=now)
            if not waited and not await self._close_vacancy(transaction, id, by, how, now):
                continue
            await transaction.run(self._queries.reject_change, id=id, por=by, now=now)
            await transaction.run(self._queries.free_key, id=id)
            closed.append(id)
            what, did, became = ("vaga_grupo", "rejeitar", "rejeitada") if waited else ("vaga", "fechar", "fechada")
            after: dict[str, Json] = {"status": became, "como": how, "por_causa_de": because}
            await self._note(transaction, by, f"{what}.{did}", f"{what}:{id}", after, now)
        return tuple(closed)

    async def _close_vacancy(self, transaction: Transaction, id: str, by: str, how: str | None, now: datetime) -> bool:
        """Close a vacancy. ``id`` is its id, or the id of the extracted vacancy from which it was imported."""
        closed = False
        for row in await transaction.all(self._queries.vacancies, id=id):
            vaga = await self._transicoes.travar(transaction, row["id"])
            if vaga is not None and vaga["status"] in PROCURA:
                closed |= await self._transicoes.mudar(
                    transaction, vaga, StatusDaVaga.FECHADA, por=by, motivo=how or "fechamento", now=now
                )
        return closed

    async def _note(
        self, transaction: Transaction, by: str, action: str, subject: str, after: dict[str, Json], now: datetime
    ) -> None:
        """Record a decision about a closing notice in the audit log, with ids and states but without the text of the
        message.
        """
        await self._audit.note(
            transaction, actor=by, action=action, subject=subject, before=None, after=after, now=now
        )  # fmt: skip

    async def _alvos(self, dito: Fechamento, regiao: str | None) -> list[Alvo]:
        """Return the vacancies to which a closing notice may refer.

        If the notice describes complete vacancies, these are returned. Otherwise every combination of the hospitals,
        days and periods that it names is returned. If it names none of these, the result is one target without fields,
        which matches every vacancy from the author.
        """
        if dito.vagas:
            return [await self._alvo(each, regiao) for each in dito.vagas]
        places: list[str | None] = [await self._hospital(each, None, None, regiao) for each in dito.hospitais] or [None]
        periods: list[int | None] = [PERIODO_ID[each] for each in dito.periodos] or [None]
        return [
            Alvo(hospital_id=place, data=day, periodo_id=period)
            for place in places
            for day in dito.dias or (None,)
            for period in periods
        ]

    async def _alvo(self, vaga: VagaLida, regiao: str | None) -> Alvo:
        town = None if vaga.cidade is None else vaga.cidade.valor
        state = None if vaga.uf is None else vaga.uf.valor
        areas = (await self._dicionario.nomes()).especialidades
        return Alvo(
            hospital_id=await self._hospital(vaga.hospital.valor, town, state, regiao),
            data=vaga.data.valor,
            periodo_id=None if vaga.periodo.trecho is None else PERIODO_ID[vaga.periodo.valor],
            especialidade_id=None
            if vaga.especialidade.trecho is None
            else areas.get(chave(vaga.especialidade.valor), _UNKNOWN),
        )

    async def _hospital(self, nome: str, cidade: str | None, uf: str | None, regiao: str | None) -> str:
        """Return the id of the hospital that a closing notice names. If the name is unknown or ambiguous, return an id
        that matches no vacancy.
        """
        found = await self._dicionario.achar(nome, cidade, uf, regiao)
        return found.id if found.id is not None and found.como in ("alias", "semelhante") else _UNKNOWN


_UNKNOWN: Final = str(UUID(int=0))
