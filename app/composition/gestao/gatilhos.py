"""Builds the services for the automatic triggers, with their jobs, listener and health check."""

from collections.abc import Mapping
from functools import partial

from app.composition.conversas import Messages
from app.composition.envio import rules_now
from app.composition.plantoes import Shifts
from app.contexts.gatilhos.contatos import Contatos
from app.contexts.gatilhos.selecao import Seletor
from app.contexts.gatilhos.service import Gatilhos, PartesDosGatilhos
from app.contexts.mensagens.fila import FILA_MENSAGENS
from app.contexts.mensagens.saidas import Saidas
from app.contexts.mensagens.tipos import Tipo
from app.settings import Settings
from batuta import Batuta
from batuta.jobs import JobHandler
from batuta.kernel import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Triggers:
    gatilhos: Gatilhos
    contatos: Contatos  # listener for messages that were sent, will never be sent, or arrived

    @property
    def handlers(self) -> Mapping[str, JobHandler]:
        return self.gatilhos.handlers


def add_triggers(work: Batuta, settings: Settings, messages: Messages, shifts: Shifts, saidas: Saidas) -> Triggers:
    """Build the trigger services. The queue FILA_MENSAGENS must already be registered with ``work``."""
    queue = work.queues[FILA_MENSAGENS.name]
    gatilhos = Gatilhos(
        PartesDosGatilhos(
            database=work.database,
            fila=queue,
            seletor=Seletor(work.database.dialect, work.zone),
            anuncios=shifts.anuncios,
            candidatos=shifts.candidatos,
            regras=rules_now(work, settings),
            clock=work.clock,
            wake=partial(work.wakeups.wake, FILA_MENSAGENS.name),
        )
    )
    contatos = Contatos(
        queries=gatilhos.queries,
        fila=saidas,
        pendencias=messages.conversas.pendencias,
        eventos=messages.eventos,
    )
    messages.ouvintes.registrar([Tipo.DISCOVERY, Tipo.REATIVACAO, Tipo.FEEDBACK], contatos)
    work.health.add(gatilhos.check)
    return Triggers(gatilhos=gatilhos, contatos=contatos)
