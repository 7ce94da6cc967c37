"""Open and decide hand-offs with the person who posted a vacancy (the poster).

One transaction writes each change: the hand-off, its history, the vacancy, a business event and the messages. A
decision locks the poster, the vacancy and the hand-off in this order. Once a decision is committed, Julia sends the
poster no further message about the hand-off.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from app.contexts.comum.fila import Fila
from app.contexts.comum.telefone import telefone_de
from app.contexts.comum.texto import chamado
from app.contexts.conversas.api import EstagioDaConversa, Estagios, MotivoDaPendencia, Pendencias
from app.contexts.grupos.api import Pessoas
from app.contexts.handoffs import textos
from app.contexts.handoffs.links import Links, Prova
from app.contexts.handoffs.model import (
    ABERTOS,
    PORQUE,
    SWITCH,
    Aberto,
    Abertura,
    Decidido,
    HandoffDesconhecido,
    HandoffEncerrado,
    HandoffNaoAbre,
    Impedimento,
    LinkRecusado,
    PrazosDoHandoff,
    Status,
    Via,
    prazo,
)
from app.contexts.mensagens.api import NovaMensagem, Switches, Tipo
from app.contexts.mensagens.service import Mensagens
from app.contexts.operacao.service import Eventos
from app.contexts.plantoes.api import fatos_da_vaga, turno_de
from app.contexts.vagas.api import LONGEST_REASON, PROCURA, StatusDaVaga, Transicoes
from batuta.guards import Hold, judge_switch
from batuta.jobs import Window
from batuta.kernel import Clock, Ids, Json, dataclass
from batuta.sql import Database, Query, Reading, Row, Transaction, load_queries

# Metadata keys of a hand-off's messages.
HANDOFF: Final = "handoff_id"
NUMERO: Final = "lembrete"


@dataclass(frozen=True, slots=True)
class HandoffQueries:
    vacancy: Query
    person: Query
    was_offered: Query
    asked: Query
    open: Query
    hold: Query
    people: Query
    close: Query
    note: Query
    contact: Query
    remind: Query
    reminding: Query
    reminded: Query
    use: Query
    was_used: Query
    open_of_poster: Query
    last: Query
    pending: Query
    listed: Query
    history: Query


@dataclass(frozen=True, slots=True, kw_only=True)
class PartesDoHandoff:
    """Services that hand-offs need. ``hours`` are the sending hours. ``links`` creates confirmation links; it is None
    if SECRET_KEY or PUBLIC_URL is not set.
    """

    database: Database
    ids: Ids
    clock: Clock
    zone: ZoneInfo
    hours: Window
    prazos: PrazosDoHandoff
    fila: Fila
    mensagens: Mensagens
    pendencias: Pendencias
    estagios: Estagios
    switches: Switches
    links: Links | None


@dataclass(frozen=True, slots=True, kw_only=True)
class VistaDoHandoff:
    """One hand-off with its vacancy and its history."""

    handoff: Row
    vaga: Row
    historico: Sequence[Row]


class Handoffs:
    def __init__(self, parts: PartesDoHandoff) -> None:
        dialect = parts.database.dialect
        self.parts = parts
        self.queries = load_queries(HandoffQueries, "sql/externos.sql", dialect)
        self._pessoas = Pessoas(dialect)
        self._transicoes = Transicoes(dialect, parts.ids)
        self._eventos = Eventos(dialect, parts.ids)

    async def is_on(self, reading: Reading) -> bool:
        """Return whether the switch ``external_handoff.enabled`` is on."""
        switches = await self.parts.switches.all(within=reading)
        return not isinstance(judge_switch(SWITCH, switches.get(SWITCH.key), self.parts.clock.now()), Hold)

    async def abrir(self, vaga_id: str, cliente_id: str, *, por: str, motivo: str) -> Aberto:
        """Open a hand-off on behalf of an operator, and send the doctor a message about it. Raises HandoffNaoAbre if
        the hand-off cannot be opened.
        """
        async with self.parts.database.transaction() as transaction:
            opened = await self._open(transaction, vaga_id, cliente_id, None, por=por, motivo=motivo, gatilho=None)
            if isinstance(opened, Impedimento):
                raise HandoffNaoAbre(porque=PORQUE[opened](), vaga=vaga_id)
            await self._tell_doctor(transaction, opened.id, vaga_id, cliente_id, "aberto", textos.PEDIDO, opened.ate)
            return opened

    async def aceitar_em(
        self, transaction: Transaction, vaga_id: str, cliente_id: str, conversa_id: str, *, por: str, motivo: str
    ) -> Abertura:
        """Open a hand-off in the caller's transaction after the doctor accepted the vacancy.

        While the hand-off switch is off, no hand-off is opened. The caller sends the answer to the doctor.
        """
        if not await self.is_on(transaction):
            return Impedimento.DESLIGADO
        gatilho = SWITCH.key
        return await self._open(transaction, vaga_id, cliente_id, conversa_id, por=por, motivo=motivo, gatilho=gatilho)

    async def confirmar(self, id: str, *, por: str, motivo: str) -> Decidido:
        """Record, on behalf of an operator, that the person who posted the vacancy confirmed the doctor. Raises
        HandoffEncerrado if the hand-off has already ended in a different way.
        """
        return await self._decide(id, Status.CONFIRMED, por=por, motivo=motivo)

    async def recusar(self, id: str, *, por: str, motivo: str) -> Decidido:
        """Record, on behalf of an operator, that the person who posted the vacancy refused the doctor. Raises
        HandoffEncerrado if the hand-off has already ended in a different way.
        """
        return await self._decide(id, Status.NOT_CONFIRMED, por=por, motivo=motivo)

    async def ver_por_link(self, token: str) -> VistaDoHandoff:
        """Return the hand-off that a confirmation link belongs to. Raises LinkRecusado for an invalid or used link."""
        proof = self._prove(token)
        if await self.parts.database.one(self.queries.was_used, jti=proof.jti) is not None:
            raise LinkRecusado
        return await self.ver(proof.handoff_id)

    async def decidir_por_link(self, token: str, *, confirma: bool) -> Decidido:
        """Decide a hand-off with a confirmation link. Raises LinkRecusado for an invalid or used link."""
        proof, status = self._prove(token), Status.CONFIRMED if confirma else Status.NOT_CONFIRMED
        async with self.parts.database.transaction() as transaction:
            now = self.parts.clock.now()
            if not await transaction.run(self.queries.use, jti=proof.jti, id=proof.handoff_id, now=now):
                raise LinkRecusado
            return await self.decidir_em(
                transaction, proof.handoff_id, status, via=Via.LINK, por="divulgador", motivo=f"link:{proof.jti}"
            )

    async def decidir_em(
        self, transaction: Transaction, id: str, status: Status, *, via: Via, por: str, motivo: str
    ) -> Decidido:
        """End a hand-off in the caller's transaction. A hand-off that has already ended does not change. If the vacancy
        is no longer waiting for this hand-off, the vacancy stays unchanged, and the hand-off ends as not confirmed even
        if the person who posted the vacancy confirms.
        """
        now = self.parts.clock.now()
        people = await transaction.one(self.queries.people, id=id)
        if people is None:
            raise HandoffDesconhecido(id=id)
        await self.parts.mensagens.travar(transaction, people["divulgador_id"])
        vaga = await self._transicoes.travar(transaction, people["vaga_id"])
        handoff = await transaction.one(self.queries.hold, id=id)
        assert handoff is not None
        if (de := Status(handoff["status"])) not in ABERTOS:
            return Decidido(id, de, mudou=False)
        waits = vaga is not None and vaga["status"] == StatusDaVaga.AGUARDANDO_CONFIRMACAO
        if not waits:
            status, via = Status.NOT_CONFIRMED, Via.VAGA
        await transaction.run(
            self.queries.close, id=id, de=de.value, para=status.value, via=via.value, por=por, now=now
        )
        await self._note(transaction, id, de, status, por=por, motivo=motivo, now=now)
        if vaga is not None and waits:
            await self._move_vacancy(transaction, vaga, handoff, status, por=por, motivo=motivo, now=now)
        await self._record(transaction, handoff, f"handoff_{status.value}", f"handoff:{id}:fim", now)
        text = textos.ao_medico(status, via)
        await self._tell_doctor(transaction, id, handoff["vaga_id"], handoff["cliente_id"], status.value, text)
        if status is Status.CONFIRMED and handoff["conversa_id"] is not None:
            await self.parts.estagios.mover(transaction, handoff["conversa_id"], EstagioDaConversa.FECHOU, now=now)
        return Decidido(id, status, mudou=True)

    async def lembrar(self, id: str, numero: int) -> bool:
        """Queue a reminder to the person who posted the vacancy. Returns False if the reminder is already queued or the
        hand-off has ended.
        """
        async with self.parts.database.transaction() as transaction:
            now = self.parts.clock.now()
            if not await transaction.run(self.queries.remind, id=id, numero=numero, now=now):
                return False
            handoff = await transaction.one(self.queries.hold, id=id)
            assert handoff is not None
            vaga = await self._vacancy(transaction, handoff["vaga_id"])
            poster = await self._person(transaction, handoff["divulgador_id"])
            texto = self._ask(
                textos.LEMBRETES[numero - 1], id, poster["primeiro_nome"], vaga, handoff["reserved_until"]
            )
            message = await self._queue(
                transaction, Tipo.LEMBRETE_HANDOFF, poster, texto, f"lembrete_handoff:{id}:{numero}",
                {HANDOFF: id, NUMERO: numero}, SWITCH.key,
            )  # fmt: skip
            await transaction.run(self.queries.reminding, id=id, mensagem_id=message)
            return True

    async def contatado(self, transaction: Transaction, mensagem_id: str, *, em: datetime) -> None:
        """Record that a hand-off's first message was sent."""
        if (row := await transaction.one(self.queries.contact, mensagem_id=mensagem_id, em=em)) is not None:
            motivo = f"mensagem:{mensagem_id}"
            await self._note(
                transaction, row["id"], Status.PENDING, Status.CONTACTED, por="julia", motivo=motivo, now=em
            )

    async def lembrado(self, transaction: Transaction, mensagem_id: str, *, em: datetime) -> None:
        """Record that a reminder was sent to the person who posted the vacancy."""
        if (row := await transaction.one(self.queries.reminded, mensagem_id=mensagem_id, em=em)) is not None:
            key = f"handoff:{row['id']}:{row['lembrete_pedido']}"
            await self._eventos.record(
                transaction, "handoff_lembrete", now=em, dedupe_key=key, vaga_id=row["vaga_id"],
                props={HANDOFF: row["id"], NUMERO: row["lembrete_pedido"]},
            )  # fmt: skip

    async def abertos_de(self, transaction: Transaction, cliente_id: str) -> Sequence[str]:
        """Return the ids of the open hand-offs with this poster (the person who posted the vacancies)."""
        rows = await transaction.all(self.queries.open_of_poster, cliente_id=cliente_id)
        return [str(row["id"]) for row in rows]

    async def ultima(self, transaction: Transaction, cliente_id: str) -> str | None:
        """Return the type of the last message that was sent to a person and was not an answer."""
        row = await transaction.one(self.queries.last, cliente_id=cliente_id)
        return None if row is None else str(row["tipo"])

    async def medico_a_espera(self, transaction: Transaction, id: str) -> str | None:
        """Return the doctor who is waiting for an open hand-off's result. Return None if the hand-off has ended."""
        handoff = await transaction.one(self.queries.hold, id=id)
        return None if handoff is None or handoff["status"] not in ABERTOS else str(handoff["cliente_id"])

    async def pedir_pessoa(
        self, transaction: Transaction, cliente_id: str, motivo: MotivoDaPendencia, *, message_id: str, em: datetime
    ) -> None:
        """Add a doctor, or a person who posted a vacancy, to the pending list, so that a team member takes over."""
        telefone = (await self._person(transaction, cliente_id))["telefone"]
        await self.parts.pendencias.abrir(
            transaction, motivo, message_id=message_id, telefone=telefone, endereco=telefone, cliente_id=cliente_id,
            conversa_id=None, em=em, now=self.parts.clock.now(),
        )  # fmt: skip

    async def listar(
        self, *, status: Status | None = None, todos: bool = False, limite: int, pular: int = 0
    ) -> Sequence[Row]:
        """Return hand-offs, most recent first. If neither ``status`` nor ``todos`` is given, return only open
        hand-offs.
        """
        return await self.parts.database.all(
            self.queries.listed, so_abertos=status is None and not todos, status=status, um=False, id=None,
            limite=limite, pular=pular,
        )  # fmt: skip

    async def ver(self, id: str) -> VistaDoHandoff:
        async with self.parts.database.snapshot() as reading:
            handoff = await reading.one(
                self.queries.listed, so_abertos=False, status=None, um=True, id=id, limite=1, pular=0
            )
            if handoff is None:
                raise HandoffDesconhecido(id=id)
            vaga = await self._vacancy(reading, handoff["vaga_id"])
            return VistaDoHandoff(handoff=handoff, vaga=vaga, historico=await reading.all(self.queries.history, id=id))

    async def _decide(self, id: str, status: Status, *, por: str, motivo: str) -> Decidido:
        async with self.parts.database.transaction() as transaction:
            done = await self.decidir_em(transaction, id, status, via=Via.PESSOA, por=por, motivo=motivo)
        if not done.mudou and done.status is not status:
            raise HandoffEncerrado(id=id)
        return done

    async def _open(
        self,
        transaction: Transaction,
        vaga_id: str,
        cliente_id: str,
        conversa_id: str | None,
        *,
        por: str,
        motivo: str,
        gatilho: str | None,
    ) -> Abertura:
        now, held = self.parts.clock.now(), await self._transicoes.travar(transaction, vaga_id)
        doctor = await transaction.one(self.queries.person, id=cliente_id)
        if held is None:
            return Impedimento.SEM_VAGA
        if held["status"] not in PROCURA:
            return Impedimento.VAGA_OCUPADA
        if doctor is None or doctor["tipo"] != "medico" or doctor["deleted_at"] is not None:
            return Impedimento.SEM_MEDICO
        if await transaction.one(self.queries.asked, vaga_id=vaga_id, cliente_id=cliente_id) is not None:
            return Impedimento.REPETIDO
        vaga = await self._vacancy(transaction, vaga_id)
        ate = prazo(
            now, turno_de(vaga, self.parts.zone).inicio, self.parts.hours, self.parts.zone, self.parts.prazos.limite
        )
        if ate is None:
            return Impedimento.SEM_TEMPO
        poster = await self._poster(transaction, vaga, now)
        if poster is None or poster["id"] == doctor["id"]:
            return Impedimento.SEM_CONTATO
        await self._transicoes.mudar(
            transaction, held, StatusDaVaga.AGUARDANDO_CONFIRMACAO, por=por, motivo=motivo, now=now,
            cliente_id=cliente_id,
        )  # fmt: skip
        id = self.parts.ids.new()
        texto = self._ask(textos.PERGUNTA, id, poster["primeiro_nome"], vaga, ate)
        message = await self._queue(transaction, Tipo.HANDOFF, poster, texto, f"handoff:{id}", {HANDOFF: id}, gatilho)
        await transaction.run(
            self.queries.open, id=id, vaga_id=vaga_id, cliente_id=cliente_id, divulgador_id=poster["id"],
            conversa_id=conversa_id, ate=ate, mensagem_id=message, now=now,
        )  # fmt: skip
        await self._note(transaction, id, None, Status.PENDING, por=por, motivo=motivo, now=now)
        row = {"id": id, "vaga_id": vaga_id, "cliente_id": cliente_id}
        await self._record(transaction, row, "handoff_aberto", f"handoff:{id}", now)
        return Aberto(id, ate)

    async def _poster(self, transaction: Transaction, vaga: Row, now: datetime) -> Row | None:
        """Return the person who posted the vacancy. Return None if that person's phone number is invalid or must not
        receive messages.
        """
        telefone = telefone_de(vaga["telefone"] or "")
        if telefone is None or not await self._pessoas.pode_receber(transaction, telefone):
            return None
        id = await self._pessoas.achar_ou_criar(transaction, telefone, vaga["nome"], self.parts.ids, now=now)
        return await self._person(transaction, id)

    async def _move_vacancy(
        self, transaction: Transaction, vaga: Row, handoff: Row, status: Status, *, por: str, motivo: str, now: datetime
    ) -> None:
        if status is Status.CONFIRMED:
            para = StatusDaVaga.RESERVADA
        else:
            offered = await transaction.one(self.queries.was_offered, id=handoff["vaga_id"]) is not None
            para = StatusDaVaga.ANUNCIADA if offered else StatusDaVaga.ABERTA
        await self._transicoes.mudar(
            transaction, vaga, para, por=por, motivo=motivo, now=now, cliente_id=handoff["cliente_id"]
        )

    async def _tell_doctor(
        self,
        transaction: Transaction,
        id: str,
        vaga_id: str,
        cliente_id: str,
        what: str,
        texto: str,
        ate: datetime | None = None,
    ) -> None:
        doctor, vaga = await self._person(transaction, cliente_id), await self._vacancy(transaction, vaga_id)
        said = texto.format(
            nome=chamado(doctor["primeiro_nome"]),
            fatos=fatos_da_vaga(vaga),
            contato=vaga["telefone"] or "",
            ate="" if ate is None else self._local(ate),
        )
        key = f"confirmacao:{id}:{what}"
        await self._queue(transaction, Tipo.CONFIRMACAO, doctor, said, key, {HANDOFF: id}, None)

    async def _queue(
        self,
        transaction: Transaction,
        tipo: Tipo,
        person: Row,
        texto: str,
        key: str,
        metadata: Mapping[str, Json],
        gatilho: str | None,
    ) -> str:
        item = NovaMensagem(
            tipo=tipo,
            cliente_id=str(person["id"]),
            telefone=person["telefone"],
            texto=texto,
            chave=key,
            gatilho=gatilho,
            metadata=metadata,
        ).item(now=self.parts.clock.now())
        (id,) = await self.parts.fila.put([item], within=transaction)
        assert id is not None  # each of these messages is queued once
        return id

    def _ask(self, texto: str, id: str, nome: str | None, vaga: Row, ate: datetime) -> str:
        links = self.parts.links
        link = "" if links is None else textos.COM_LINK.format(link=links.criar(id, self.parts.ids.new(), ate))
        return texto.format(nome=chamado(nome), fatos=fatos_da_vaga(vaga), link=link, ate=self._local(ate))

    def _local(self, at: datetime) -> str:
        return textos.quando(at.astimezone(self.parts.zone))

    def _prove(self, token: str) -> Prova:
        links = self.parts.links
        proof = None if links is None else links.ler(token, now=self.parts.clock.now())
        if proof is None:
            raise LinkRecusado
        return proof

    async def _vacancy(self, reading: Reading, id: str) -> Row:
        row = await reading.one(self.queries.vacancy, id=id)
        assert row is not None
        return row

    async def _person(self, reading: Reading, id: str) -> Row:
        row = await reading.one(self.queries.person, id=id)
        assert row is not None
        return row

    async def _note(
        self,
        transaction: Transaction,
        id: str,
        de: Status | None,
        para: Status,
        *,
        por: str,
        motivo: str,
        now: datetime,
    ) -> None:
        await transaction.run(
            self.queries.note, id=id, de=None if de is None else de.value, para=para.value, por=por,
            motivo=motivo[:LONGEST_REASON], now=now,
        )  # fmt: skip

    async def _record(
        self, transaction: Transaction, handoff: Row | Mapping[str, Any], event: str, key: str, now: datetime
    ) -> None:
        await self._eventos.record(
            transaction, event, now=now, dedupe_key=key, cliente_id=handoff["cliente_id"], vaga_id=handoff["vaga_id"],
            props={HANDOFF: handoff["id"]},
        )  # fmt: skip
