"""A worker that also runs ``processar_handoffs`` continuously, and dies at random before or after a commit that changes
a hand-off.
"""

import asyncio
import os
import random
import signal
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from app.composition.julia import julia_of
from batuta.engine.batuta import Batuta
from batuta.jobs import JobCall
from batuta.kernel.errors import StoreUnavailable
from scripts import ensaio
from scripts.ensaio import Plano

DIES = 0.02
PAUSE = 0.1


def run(encoded: Mapping[str, Any]) -> None:
    plano = ensaio.plano_of(encoded)
    ensaio.log_into(plano)
    asyncio.run(_run(plano))


async def _run(plano: Plano) -> None:
    work = ensaio.office(plano)
    _die_inside(work, random.Random(os.getpid()))
    repeating = asyncio.create_task(_repeat(plano, work))
    await ensaio.serve_queues(plano, work)
    repeating.cancel()


async def _repeat(plano: Plano, work: Batuta) -> None:
    """Run the job until the process ends. After each complete run, record when that run began."""
    built = work.opened_at
    while work.opened_at == built:
        await asyncio.sleep(PAUSE)
    job = julia_of(work).handoffs.jobs
    while True:
        now = work.clock.now()
        call = JobCall(key="storm", params={}, started_at=now, deadline=now + timedelta(days=9))
        try:
            await job.processar_handoffs(call)
        except StoreUnavailable:
            continue  # a killed process still holds the lock for a moment
        ensaio.note(plano, "ran", now.isoformat())
        await asyncio.sleep(PAUSE)


def _die_inside(work: Batuta, lots: random.Random) -> None:
    """Make the process die at random, either just before or just after the commit that stores a reminder or the end of
    a hand-off.
    """
    handoffs = julia_of(work).handoffs.handoffs
    queue, remind = handoffs._queue, handoffs.lembrar

    def die_perhaps() -> None:
        if lots.random() < DIES:
            os.kill(os.getpid(), signal.SIGKILL)

    async def queue_or_die(*values: Any) -> str:
        id = await queue(*values)
        die_perhaps()
        return id

    async def remind_or_die(id: str, numero: int) -> bool:
        done = await remind(id, numero)
        die_perhaps()
        return done

    handoffs._queue, handoffs.lembrar = queue_or_die, remind_or_die  # type: ignore[method-assign, assignment]
