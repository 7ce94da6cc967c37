"""Run the triggers: select doctors, queue messages to them, and record the contacts.

One run selects, queues and records in one transaction. Two runs of the same trigger never overlap. The switches are
checked again before each send, so a queued message waits while its trigger is off.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from app.contexts.comum.fila import Fila
from app.contexts.comum.prazo import OUT_OF_TIME, must_stop
from app.contexts.comum.saude import report_count
from app.contexts.gatilhos.model import (
    DOCTORS_PER_VACANCY,
    REGRAS,
    Gatilho,
    OfertaSimulada,
    Selecao,
    Simulacao,
    SituacaoDoGatilho,
)
from app.contexts.gatilhos.selecao import Seletor
from app.contexts.gatilhos.textos import texto_de
from app.contexts.mensagens.api import TRIGGER_OFF, NovaMensagem, RegrasDeEnvio
from app.contexts.plantoes.api import (
    Anuncio,
    Anuncios,
    Candidatos,
    HospitalSemOfertas,
    PlantaoComecou,
    VagaDesconhecida,
)
from batuta import Done, Outcome, Partial
from batuta.health import QUEUES, Check, Report, Severity
from batuta.jobs import JobCall, JobHandler
from batuta.kernel import Clock, Json, dataclass
from batuta.reasons import prefix_of
from batuta.sql import Database, Query, Row, Transaction, load_queries

WEEK: Final = timedelta(days=7)
EXAMPLES: Final = 20


RulesNow = Callable[[Any, str | None, str | None], Awaitable[RegrasDeEnvio]]


@dataclass(frozen=True, slots=True)
class TriggerQueries:
    alone: Query
    contact: Query
    sent: Query
    ended: Query
    asked: Query
    answered: Query
    doctor: Query
    learn: Query
    messages: Query
    answers: Query
    held: Query


@dataclass(frozen=True, slots=True, kw_only=True)
class PartesDosGatilhos:
    """The services that the triggers use. ``regras`` reads the switches. ``wake`` is called after messages
    are queued.
    """

    database: Database
    fila: Fila
    seletor: Seletor
    anuncios: Anuncios
    candidatos: Candidatos
    regras: RulesNow
    clock: Clock
    wake: Callable[[], None]


class Gatilhos:
    def __init__(self, parts: PartesDosGatilhos) -> None:
        self._parts = parts
        file = Path(__file__).parent / "sql" / "gatilhos.sql"
        self.queries = load_queries(TriggerQueries, file, parts.database.dialect)

    @property
    def handlers(self) -> Mapping[str, JobHandler]:
        return {
            "executar-discovery-autonomo": self.executar_discovery_autonomo,
            "executar-oferta-autonoma": self.executar_oferta_autonoma,
            "executar-reativacao-autonoma": self.executar_reativacao_autonoma,
            "executar-feedback-autonomo": self.executar_feedback_autonomo,
        }

    async def executar_discovery_autonomo(self, call: JobCall) -> Outcome:
        """Ask doctors for their speciality if it is unknown. A run asks at most 50 doctors, and each doctor is asked
        once.
        """
        return await self._write_to_doctors(Gatilho.DISCOVERY)

    async def executar_reativacao_autonoma(self, call: JobCall) -> Outcome:
        """Ask at most 20 doctors whether they want offers. Julia asks only doctors with whom it has exchanged no
        message for 60 days, and asks each doctor at most once in 60 days.
        """
        return await self._write_to_doctors(Gatilho.REATIVACAO)

    async def executar_feedback_autonomo(self, call: JobCall) -> Outcome:
        """Ask at most 20 doctors for feedback about a shift that was confirmed in the last two days. Julia asks about
        each shift only once.
        """
        return await self._write_to_doctors(Gatilho.FEEDBACK)

    async def executar_oferta_autonoma(self, call: JobCall) -> Outcome:
        """Offer at most 30 vacancies whose shifts are within the next 20 days. Each vacancy is offered to at most five
        doctors.
        """
        now, trigger = self._parts.clock.now(), Gatilho.OFERTA
        selected = await self._parts.seletor.selecionar(self._parts.database, trigger, now=now)
        offered: list[str] = []
        without, taken, done = 0, 0, 0
        for row in selected.escolhidos:
            if must_stop(call, self._parts.clock.now()):
                break
            doctors = await self._offer(str(row["id"]))
            done += 1
            taken += doctors is None
            without += doctors == ()
            offered.extend(doctors or ())
        result: dict[str, Json] = {
            "vagas_encontradas": selected.encontrados,
            "ofertas_enfileiradas": len(offered),
            "medicos_escolhidos": len(set(offered)),
            "vagas_sem_medico": without,
            "vagas_ocupadas": taken,
            "restantes": selected.aptos - done,
            "por_motivo": dict(selected.impedidos),
            "sem_selecao": selected.sem_selecao,
        }
        if done < len(selected.escolhidos):
            return Partial(OUT_OF_TIME(), items=len(offered), result=result)
        return Done(items=len(offered), result=result)

    async def listar(self) -> list[SituacaoDoGatilho]:
        """Return every trigger with its figures for the last seven days and the switch that currently stops
        it, if any.
        """
        database, since = self._parts.database, self._parts.clock.now() - WEEK
        messages = {row["chave"]: row for row in await database.all(self.queries.messages, since=since)}
        answers = await database.all(self.queries.answers, since=since)
        return [await self._situation(each, messages.get(REGRAS[each].chave), answers) for each in Gatilho]

    async def simular(self, gatilho: Gatilho) -> Simulacao:
        """Return the selection that the trigger's next run would make, with the reasons that exclude other candidates.
        Nothing is written.
        """
        database, now = self._parts.database, self._parts.clock.now()
        selected = await self._parts.seletor.selecionar(database, gatilho, exemplos=EXAMPLES, now=now)
        return Simulacao(
            gatilho=gatilho,
            suspenso_por=await self._find_switch(gatilho),
            selecao=selected,
            ofertas=await self._simulate_offers(selected) if gatilho is Gatilho.OFERTA else (),
        )

    async def ask(self) -> Report:
        row = await self._parts.database.one(self.queries.held, held=prefix_of(TRIGGER_OFF))
        count, since = (0, None) if row is None else (int(row["items"]), row["desde"])
        return report_count(Severity.INFO, "gatilhos", "suspensas", count, since, lost=0)

    @property
    def check(self) -> Check:
        return Check(name="gatilhos", section=QUEUES, ask=self.ask)

    async def _write_to_doctors(self, gatilho: Gatilho) -> Outcome:
        now = self._parts.clock.now()
        async with self._parts.database.transaction() as transaction:
            await transaction.one(self.queries.alone, gatilho=gatilho.value)
            selected = await self._parts.seletor.selecionar(transaction, gatilho, now=now)
            queued = await self._queue(transaction, gatilho, selected.escolhidos, now)
        if queued:
            self._parts.wake()
        return Done(
            items=queued,
            result={
                "encontrados": selected.encontrados,
                "enfileirados": queued,
                "restantes": selected.restantes,
                "por_motivo": dict(selected.impedidos),
                "sem_selecao": selected.sem_selecao,
            },
        )

    async def _queue(self, transaction: Transaction, gatilho: Gatilho, rows: Sequence[Row], now: datetime) -> int:
        rule = REGRAS[gatilho]
        items = [
            NovaMensagem(
                tipo=rule.tipo,
                cliente_id=str(row["id"]),
                telefone=row["telefone"],
                texto=texto_de(gatilho, row),
                chave=f"{rule.tipo}:{row['vaga_id'] or row['id']}",
                gatilho=rule.chave,
                metadata={} if row["vaga_id"] is None else {"vaga_id": str(row["vaga_id"])},
            ).item(now=now)
            for row in rows
        ]
        queued = 0
        for row, id in zip(rows, await self._parts.fila.put(items, within=transaction), strict=True):
            if id is not None:
                about = {"gatilho": gatilho.value, "cliente_id": row["id"], "vaga_id": row["vaga_id"]}
                await transaction.run(self.queries.contact, mensagem_id=id, **about, now=now)
                queued += 1
        return queued

    async def _offer(self, vaga_id: str) -> tuple[str, ...] | None:
        """Offer one vacancy to suitable doctors. Return the ids of the doctors who get the offer, or None if the
        vacancy can no longer be offered.
        """
        chave = REGRAS[Gatilho.OFERTA].chave
        try:
            answer = await self._parts.anuncios.anunciar_aos_melhores(
                vaga_id, DOCTORS_PER_VACANCY, por=Gatilho.OFERTA.value, gatilho=chave
            )
        except (HospitalSemOfertas, PlantaoComecou, VagaDesconhecida):
            return None
        return answer.oferecidas if isinstance(answer, Anuncio) else None

    async def _simulate_offers(self, selected: Selecao) -> tuple[OfertaSimulada, ...]:
        """Choose the doctors to whom a run would offer each selected vacancy. A doctor chosen for one vacancy is not
        chosen for another, because in a run a queued offer prevents another offer.
        """
        busy: set[str] = set()
        found = []
        for row in selected.escolhidos:
            choice = await self._parts.candidatos.escolher(str(row["id"]), DOCTORS_PER_VACANCY + len(busy))
            free = [each.cliente_id for each in choice.candidatos if each.cliente_id not in busy][:DOCTORS_PER_VACANCY]
            busy.update(free)
            reasons = {reason.value: count for reason, count in choice.impedidos.items()}
            found.append(OfertaSimulada(vaga_id=str(row["id"]), medicos=tuple(free), impedidos=reasons))
        return tuple(found)

    async def _situation(self, gatilho: Gatilho, messages: Row | None, answers: Sequence[Row]) -> SituacaoDoGatilho:
        mine = [row for row in answers if row["gatilho"] == gatilho.value]
        figures = {} if messages is None else {name: int(messages[name]) for name in FIGURES}
        return SituacaoDoGatilho(
            gatilho=gatilho,
            suspenso_por=await self._find_switch(gatilho),
            **figures,
            respondidos=sum(int(row["quantas"]) for row in mine),
            avaliacoes={row["avaliacao"]: int(row["quantas"]) for row in mine if row["avaliacao"] is not None},
        )

    async def _find_switch(self, gatilho: Gatilho) -> str | None:
        return (await self._parts.regras(self._parts.database, None, REGRAS[gatilho].chave)).trigger_off


FIGURES: Final = ("na_fila", "enfileiradas", "enviados")
