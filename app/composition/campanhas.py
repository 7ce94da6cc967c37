"""Build the campaign services. Operators manage campaigns; a job or the worker starts the ones that are due."""

from collections.abc import Mapping
from datetime import timedelta
from functools import partial

from app.composition.conversas import Messages
from app.composition.envio import rules_now
from app.contexts.campanhas.inicio import Inicio
from app.contexts.campanhas.jobs import LOOK_EVERY, CampaignJobs, CampaignLoop
from app.contexts.campanhas.lotes import MensagensDeCampanha
from app.contexts.campanhas.service import Campanhas
from app.contexts.mensagens.fila import FILA_MENSAGENS
from app.contexts.mensagens.regras import BOUND, WINDOW_OF
from app.settings import Settings
from batuta import Batuta
from batuta.jobs import JobHandler, find_holding_switch
from batuta.kernel import dataclass
from batuta.loops import LoopPolicy

STARTING = LoopPolicy(every=LOOK_EVERY, stuck_after=timedelta(minutes=5), max_failures=20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaigns:
    campanhas: Campanhas
    inicio: Inicio
    loop: CampaignLoop
    jobs: CampaignJobs

    @property
    def handlers(self) -> Mapping[str, JobHandler]:
        return {"processar-campanhas-agendadas": self.jobs.processar_campanhas_agendadas}


def build_campaigns(work: Batuta, settings: Settings, messages: Messages) -> Campaigns:
    """Build the campaign services. The queue FILA_MENSAGENS must already be registered with ``work``."""
    queue, wake = work.queues[FILA_MENSAGENS.name], partial(work.wakeups.wake, FILA_MENSAGENS.name)
    of_batches = MensagensDeCampanha(work.database.dialect, messages.mensagens, messages.eventos, work.clock)
    work.batches.add_members(of_batches)
    rules = rules_now(work, settings)
    inicio = Inicio(work.database, queue, rules, messages.eventos, work.batches, of_batches, work.ids, work.clock)
    held = partial(_find_held_types, work)
    return Campaigns(
        campanhas=Campanhas(
            work.database, messages.mensagens, inicio, work.batches, of_batches, held, work.ids, work.clock, wake
        ),
        inicio=inicio,
        loop=CampaignLoop(inicio, held),
        jobs=CampaignJobs(inicio),
    )


def add_campaigns(work: Batuta, campaigns: Campaigns) -> None:
    """Register the loop that starts campaigns in the worker when they become due between two fires of the
    campaign job.
    """
    work.add_loop(campaigns.loop, STARTING)


async def _find_held_types(work: Batuta) -> dict[str, str]:
    """Return the campaign types whose job is held back by a switch, and the reason for each. The loop that starts
    campaigns skips these types.
    """
    controls, switches = await work.controls.read(), await work.switches.all()
    jobs, now = work.registry.timetable(controls), work.clock.now()
    is_bound = work.registry.profile(controls) == BOUND
    job_of = {tipo: f"processar_campanhas_{window if is_bound else 'agendadas'}" for tipo, window in WINDOW_OF.items()}
    return {
        tipo: why
        for tipo, name in job_of.items()
        if name in jobs and (why := find_holding_switch(jobs[name], switches, now)) is not None
    }
