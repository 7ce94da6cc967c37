"""Create, list, reserve, release and end vacancies.

A method that changes a vacancy locks it and checks whether the change is permitted. It writes state, history and event
in one transaction. If another caller has already changed the vacancy, the method raises no error but returns a
``model.Resposta`` that says so.
"""

from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from functools import partial
from typing import Final
from zoneinfo import ZoneInfo

from app.contexts.leitura_grupos.api import Periodo, chave, periodo_das_horas
from app.contexts.nomes.api import Dicionario
from app.contexts.operacao.service import Eventos
from app.contexts.plantoes.horario import HORAS
from app.contexts.plantoes.lugares import achar_hospital
from app.contexts.plantoes.model import (
    Decisao,
    Feita,
    HospitalSemOfertas,
    Impedida,
    MedicoDesconhecido,
    MotivoDaCancelada,
    NovaVaga,
    Repetida,
    Resposta,
    SituacaoDaVaga,
    VagaDesconhecida,
    VagaRepetida,
    decidir_cancelamento,
    decidir_liberacao,
    decidir_realizada,
    decidir_reserva,
)
from app.contexts.vagas.api import PERIODO_ID, PROCURA, StatusDaVaga, Transicoes, chave_de
from batuta.kernel import Clock, Ids, dataclass
from batuta.sql import Database, Query, Row, Transaction, load_queries

# A sort position before every vacancy: day, hour and id.
BEFORE_ALL: Final = (date.min, "", "00000000-0000-0000-0000-000000000000")


@dataclass(frozen=True, slots=True)
class VacancyQueries:
    hold_hospital: Query
    is_blocked: Query
    same: Query
    create: Query
    listed: Query
    one: Query
    history: Query
    offers: Query
    interests: Query
    is_doctor: Query
    was_offered: Query
    interest: Query
    counts: Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtro:
    status: StatusDaVaga | None = None
    origem: str | None = None
    cliente_id: str | None = None
    hospital: str = ""  # part of the hospital's name, with or without accents
    de: date = date.min
    ate: date = date.max


@dataclass(frozen=True, slots=True, kw_only=True)
class Vista:
    """One vacancy with its history, offers and interested doctors."""

    vaga: Row
    historico: Sequence[Row]
    ofertas: Sequence[Row]
    interesses: Sequence[Row]


class Plantoes:
    def __init__(self, database: Database, dicionario: Dicionario, ids: Ids, zone: ZoneInfo, clock: Clock) -> None:
        self._database = database
        self._dicionario = dicionario
        self._ids = ids
        self._zone = zone
        self._clock = clock
        self._transicoes = Transicoes(database.dialect, ids)
        self._eventos = Eventos(database.dialect, ids)
        self._queries = load_queries(VacancyQueries, "sql/plantoes.sql", database.dialect)

    async def criar(self, nova: NovaVaga, *, por: str) -> str:
        """Create a vacancy and return its id. Raises CampoDaVagaRecusado for an implausible field, and VagaRepetida if
        an equal vacancy is already open.
        """
        now = self._clock.now()
        nova.recusar(now.astimezone(self._zone).date())
        periodo, starts, ends = _horas(nova)
        async with self._database.transaction() as transaction:
            hospital_id = await self._hospital(transaction, nova, por, now)
            area_id = await self._dicionario.especialidade_de_gestor(transaction, nova.especialidade, now=now)
            held = await transaction.one(self._queries.hold_hospital, id=hospital_id)
            if await transaction.one(self._queries.is_blocked, id=hospital_id) is not None:
                raise HospitalSemOfertas(hospital="" if held is None else held["nome"])
            written = {"hospital_raw": nova.hospital, "data": nova.data, "grupo_tipo": None}
            key = chave_de(written, hospital_id, area_id, PERIODO_ID[periodo])
            same = await transaction.one(self._queries.same, hash=key)
            if same is not None and not nova.outra:
                raise VagaRepetida(id=same["id"])
            id = self._ids.new()
            await transaction.run(
                self._queries.create, id=id, hospital_id=hospital_id, especialidade_id=area_id,
                periodo_id=PERIODO_ID[periodo], data=nova.data, hora_inicio=starts, hora_fim=ends, valor=nova.valor,
                valor_tipo="a_combinar" if nova.valor is None else "fixo", hash=key, por=por, now=now,
            )  # fmt: skip
            begin, values = self._transicoes.comecar(id, por=por, motivo="criada", now=now)
            await transaction.run(begin, **values)
            await self._eventos.record(
                transaction, "vaga_criada", now=now, dedupe_key=f"vaga:{id}:1", vaga_id=id, hospital_id=hospital_id
            )
        self._dicionario.esquecer()
        return id

    async def listar(
        self, filtro: Filtro, *, limite: int, pular: int = 0, depois: tuple[date, str, str] = BEFORE_ALL
    ) -> Sequence[Row]:
        """List vacancies, earliest day first. ``depois`` has the day, hour and id of a vacancy; the list begins after
        this vacancy.
        """
        return await self._database.all(
            self._queries.listed, status=filtro.status, origem=filtro.origem, cliente_id=filtro.cliente_id,
            por_medico=filtro.cliente_id is not None, hospital=_pattern(filtro.hospital), de=filtro.de,
            ate=filtro.ate, limite=limite, pular=pular,
            depois_dia=depois[0], depois_hora=depois[1], depois_de=depois[2],
        )  # fmt: skip

    async def ver(self, id: str) -> Vista:
        async with self._database.snapshot() as reading:
            vaga = await reading.one(self._queries.one, id=id)
            if vaga is None:
                raise VagaDesconhecida(id=id)
            return Vista(
                vaga=vaga,
                historico=await reading.all(self._queries.history, id=id),
                ofertas=await reading.all(self._queries.offers, id=id),
                interesses=await reading.all(self._queries.interests, id=id),
            )

    async def contagem(self) -> dict[StatusDaVaga, int]:
        """Count the vacancies by state. Vacancies on past days are counted only if they are reserved or waiting for a
        confirmation.
        """
        today = self._clock.now().astimezone(self._zone).date()
        rows = await self._database.all(self._queries.counts, hoje=today)
        return {StatusDaVaga(row["status"]): int(row["items"]) for row in rows}

    async def registrar_interesse(self, id: str, cliente_id: str, *, por: str) -> Resposta:
        """Record that a doctor wants the vacancy. This is possible even while the vacancy is reserved, because it may
        be released again.
        """
        now, still = self._clock.now(), (*PROCURA, StatusDaVaga.RESERVADA, StatusDaVaga.AGUARDANDO_CONFIRMACAO)
        async with self._database.transaction() as transaction:
            vaga = await self._hold(transaction, id, cliente_id)
            if (status := StatusDaVaga(vaga["status"])) not in still:
                return Impedida(id, status, still)
            if not await transaction.run(self._queries.interest, id=id, cliente_id=cliente_id, por=por, now=now):
                return Repetida(id, status)
            await self._eventos.record(
                transaction,
                "vaga_interesse",
                now=now,
                dedupe_key=f"vaga_interesse:{id}:{cliente_id}",
                cliente_id=cliente_id,
                vaga_id=id,
                hospital_id=vaga["hospital_id"],
            )
        return Feita(id, status)

    async def reservar(self, id: str, cliente_id: str, *, por: str, motivo: str = "reserva") -> Resposta:
        """Reserve the vacancy for a doctor. If two calls run at the same time, the first one to lock the vacancy
        succeeds, and the other returns ``Ocupada``.
        """
        return await self._change(id, partial(decidir_reserva, quer=cliente_id), por, motivo, cliente_id)

    async def reservar_em(
        self, transaction: Transaction, id: str, cliente_id: str, *, por: str, motivo: str = "reserva"
    ) -> Resposta:
        """Reserve the vacancy for a doctor, in the caller's transaction."""
        decide = partial(decidir_reserva, quer=cliente_id)
        return await self._change_in(transaction, id, decide, por, motivo, cliente_id)

    async def liberar(self, id: str, *, por: str, motivo: str) -> Resposta:
        """Release a reserved vacancy, so that other doctors can take it."""
        return await self._change(id, decidir_liberacao, por, motivo)

    async def liberar_em(self, transaction: Transaction, id: str, *, por: str, motivo: str) -> Resposta:
        """Release a reserved vacancy, in the caller's transaction."""
        return await self._change_in(transaction, id, decidir_liberacao, por, motivo, None)

    async def realizar(self, id: str, *, por: str) -> Resposta:
        """Record an operator's confirmation that the shift took place."""
        return await self._change(id, decidir_realizada, por, "realizada")

    async def cancelar(self, id: str, motivo: MotivoDaCancelada, *, por: str) -> Resposta:
        """Record that the shift did not take place, or withdraw a vacancy that has no doctor."""
        return await self._change(id, partial(decidir_cancelamento, motivo=motivo), por, motivo.value)

    async def _hospital(self, transaction: Transaction, nova: NovaVaga, por: str, now: datetime) -> str:
        if not nova.novo_hospital:
            return achar_hospital(nova, await self._dicionario.nomes_em(transaction))
        return await self._dicionario.hospital_de_gestor(
            transaction, nova.hospital, nova.cidade, nova.uf, None, por=por, now=now
        )

    async def _change(
        self, id: str, decide: Callable[[SituacaoDaVaga], Decisao], por: str, motivo: str, cliente_id: str | None = None
    ) -> Resposta:
        async with self._database.transaction() as transaction:
            return await self._change_in(transaction, id, decide, por, motivo, cliente_id)

    async def _change_in(
        self,
        transaction: Transaction,
        id: str,
        decide: Callable[[SituacaoDaVaga], Decisao],
        por: str,
        motivo: str,
        cliente_id: str | None,
    ) -> Resposta:
        vaga = await self._hold(transaction, id, cliente_id)
        offered = await transaction.one(self._queries.was_offered, id=id) is not None
        decided = decide(
            SituacaoDaVaga(id=id, status=StatusDaVaga(vaga["status"]), cliente_id=vaga["cliente_id"], oferecida=offered)
        )
        if not isinstance(decided, StatusDaVaga):
            return decided
        made = await self._transicoes.mudar(
            transaction, vaga, decided, por=por, motivo=motivo, now=self._clock.now(), cliente_id=cliente_id
        )
        assert made, f"the table of transitions does not permit {vaga['status']} to {decided}"
        return Feita(id, decided)

    async def _hold(self, transaction: Transaction, id: str, cliente_id: str | None) -> Row:
        """Lock the vacancy and return its row. Raises an error if the vacancy or a named doctor does not exist."""
        if (vaga := await self._transicoes.travar(transaction, id)) is None:
            raise VagaDesconhecida(id=id)
        if cliente_id is not None and await transaction.one(self._queries.is_doctor, id=cliente_id) is None:
            raise MedicoDesconhecido(id=cliente_id)
        return vaga


def _pattern(nome: str) -> str | None:
    """Return the SQL pattern for names that contain ``nome``. The pattern needs no escapes, because normalised names
    have only letters, digits and spaces.
    """
    form = chave(nome)
    return f"%{form}%" if form else None


def _horas(nova: NovaVaga) -> tuple[Periodo, str, str]:
    """Return a new vacancy's hours and its period, such as day or night. If the hours are missing, the period's usual
    hours are used. If the period is missing, it is derived from the hours.
    """
    if nova.hora_inicio is None or nova.hora_fim is None:
        assert nova.periodo is not None
        return (nova.periodo, *HORAS[nova.periodo])
    hours = time.fromisoformat(nova.hora_inicio), time.fromisoformat(nova.hora_fim)
    return nova.periodo or periodo_das_horas(*hours), nova.hora_inicio, nova.hora_fim
