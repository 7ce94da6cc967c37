"""Offer a vacancy to doctors. Each doctor gets at most one offer for each vacancy, as one message.

One transaction writes the offers, their messages and the new state of the vacancy. If the process dies before the
commit, no doctor gets an offer. The queue sends each message later. Before the send, every rule that may hold back or
block the message is checked again. If the vacancy has been taken in the meantime, the message is cancelled.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from app.contexts.comum.fila import Fila
from app.contexts.mensagens.api import NovaMensagem, Tipo
from app.contexts.operacao.service import Eventos
from app.contexts.plantoes.candidatos import Candidato, Candidatos, Impedimento
from app.contexts.plantoes.horario import turno_de
from app.contexts.plantoes.model import (
    HospitalSemOfertas,
    PlantaoComecou,
    Resposta,
    SituacaoDaVaga,
    VagaDesconhecida,
    decidir_anuncio,
)
from app.contexts.plantoes.texto import oferta
from app.contexts.vagas.api import StatusDaVaga, Transicoes
from batuta.kernel import Clock, Ids, dataclass
from batuta.sql import Database, Query, Row, Transaction, load_queries

TIPO: Final = Tipo.OFERTA


@dataclass(frozen=True, slots=True)
class OfferQueries:
    facts: Query
    offer: Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Anuncio:
    """The result of offering a vacancy. ``oferecidas`` has the doctors whose message is queued. ``recusadas`` maps each
    doctor who gets no message to the reason.
    """

    id: str
    status: StatusDaVaga
    oferecidas: tuple[str, ...] = ()
    recusadas: Mapping[str, Impedimento] = field(default_factory=dict)


class Anuncios:
    def __init__(
        self,
        database: Database,
        candidatos: Candidatos,
        fila: Fila,
        ids: Ids,
        zone: ZoneInfo,
        clock: Clock,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        """Build the service that offers vacancies. ``wake`` is called after messages are queued, so that a worker sends
        them.
        """
        self._database = database
        self._candidatos = candidatos
        self._fila = fila
        self._zone = zone
        self._clock = clock
        self._wake = wake
        self._transicoes = Transicoes(database.dialect, ids)
        self._eventos = Eventos(database.dialect, ids)
        self._queries = load_queries(OfferQueries, "sql/anuncios.sql", database.dialect)

    async def anunciar(
        self, id: str, clientes: Sequence[str], *, por: str, gatilho: str | None = None
    ) -> Anuncio | Resposta:
        """Offer a vacancy to the doctors in ``clientes``. If the vacancy is no longer available, write nothing and
        return a ``Resposta``. ``gatilho`` is the switch for the trigger that offers the vacancy, or None if a person
        offers it.
        """
        now, wanted = self._clock.now(), list(dict.fromkeys(clientes))
        async with self._database.transaction() as transaction:
            if (vaga := await self._transicoes.travar(transaction, id)) is None:
                raise VagaDesconhecida(id=id)
            status = StatusDaVaga(vaga["status"])
            decided = decidir_anuncio(SituacaoDaVaga(id=id, status=status, cliente_id=vaga["cliente_id"]))
            if not isinstance(decided, StatusDaVaga):
                return decided
            facts = await self._facts(transaction, vaga, now)
            known = await self._candidatos.examinar(transaction, vaga, wanted)
            refused = {each: why for each in wanted if (why := _reason(known.get(each))) is not None}
            people = [known[each] for each in wanted if each not in refused]
            await self._offer(transaction, facts, people, por, gatilho, now)
            if people and status is StatusDaVaga.ABERTA:
                await self._transicoes.mudar(transaction, vaga, decided, por=por, motivo="anunciada", now=now)
                status = decided
        if people:
            self._wake()
        return Anuncio(id=id, status=status, oferecidas=tuple(each.cliente_id for each in people), recusadas=refused)

    async def anunciar_aos_melhores(
        self, id: str, quantos: int, *, por: str, gatilho: str | None = None
    ) -> Anuncio | Resposta:
        """Offer the vacancy to the best candidates, at most ``quantos`` of them."""
        best = await self._candidatos.candidatos(id, quantos)
        return await self.anunciar(id, [each.cliente_id for each in best], por=por, gatilho=gatilho)

    async def _facts(self, transaction: Transaction, vaga: Row, now: datetime) -> Row:
        """Return the facts that an offer's text states. Raises an error if the shift has started or the hospital is
        blocked.
        """
        if turno_de(vaga, self._zone).inicio <= now:
            raise PlantaoComecou(id=vaga["id"])
        facts = await transaction.one(self._queries.facts, id=vaga["id"])
        assert facts is not None
        if facts["bloqueado"]:
            raise HospitalSemOfertas(hospital=facts["hospital"])
        return facts

    async def _offer(
        self,
        transaction: Transaction,
        vaga: Row,
        people: Sequence[Candidato],
        por: str,
        gatilho: str | None,
        now: datetime,
    ) -> None:
        items = [
            NovaMensagem(
                tipo=TIPO,
                cliente_id=each.cliente_id,
                telefone=each.telefone,
                texto=oferta(each.nome, vaga),
                chave=f"{TIPO}:{vaga['id']}:{each.cliente_id}",
                gatilho=gatilho,
                metadata={"vaga_id": str(vaga["id"])},
            ).item(now=now)
            for each in people
        ]
        taken = await self._fila.put(items, within=transaction)
        for each, message_id in zip(people, taken, strict=True):
            assert message_id is not None  # the vacancy is locked, and each doctor has at most one offer of it
            made = {"id": vaga["id"], "cliente_id": each.cliente_id}
            await transaction.run(self._queries.offer, **made, mensagem_id=message_id, por=por, now=now)
            await self._eventos.record(
                transaction,
                "vaga_oferecida",
                now=now,
                dedupe_key=f"vaga_oferecida:{vaga['id']}:{each.cliente_id}",
                cliente_id=each.cliente_id,
                vaga_id=vaga["id"],
                hospital_id=vaga["hospital_id"],
                props={"por": por},
            )


def _reason(candidato: Candidato | None) -> Impedimento | None:
    return Impedimento.DESCONHECIDO if candidato is None else candidato.impedimento
