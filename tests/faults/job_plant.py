"""A process that runs Julia's jobs repeatedly until it is killed."""

import asyncio
import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from app.composition.julia import julia_of
from batuta import Done
from batuta.jobs import JobCall, JobHandler
from scripts import ensaio

PAUSE = 0.1
WITHIN = timedelta(hours=1)


def run_followups(encoded: Mapping[str, Any]) -> None:
    """Queue the due follow-ups and end the pauses that have expired."""
    asyncio.run(_run(ensaio.plano_of(encoded), "processar-followups", "processar-pausas-expiradas"))


def run_resumes(encoded: Mapping[str, Any]) -> None:
    """Queue answers to the messages that arrived during the night. If an answer failed, create an entry that an
    operator must handle.
    """
    asyncio.run(_run(ensaio.plano_of(encoded), "processar-retomadas", "processar-mensagens-agendadas"))


async def _run(plano: ensaio.Plano, *jobs: str) -> None:
    ensaio.log_into(plano)
    work = ensaio.office(plano)
    julia = julia_of(work)
    known: dict[str, JobHandler] = {**julia.followups.handlers, **julia.answers.handlers, **julia.sending.handlers}
    async with work:
        ensaio.note(plano, "up", str(os.getpid()))
        while True:
            for name in jobs:
                now = work.clock.now()
                call = JobCall(key=name, params={}, started_at=now, deadline=now + WITHIN)
                outcome = await known[name](call)
                if isinstance(outcome, Done) and outcome.items:
                    ensaio.note(plano, name, str(outcome.items))
            await asyncio.sleep(PAUSE)
