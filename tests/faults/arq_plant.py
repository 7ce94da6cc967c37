"""Julia's worker and a plain ARQ worker, with an additional task that records each of its runs in a file."""

import asyncio
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from arq.worker import run_worker

from app.composition.arq import worker_settings
from app.composition.julia import julia_of
from app.main import build
from app.settings import Settings
from batuta.engine.batuta import Batuta
from batuta.logs import begin_logging
from batuta.processes.exit import stop_on_signals
from batuta.tasks.task import TaskContext


@dataclass(frozen=True, kw_only=True)
class Plan:
    url: str
    folder: str
    redis: str
    slowness: float = 1.0  # how slow the machine is; leases and drains are lengthened by this factor
    # number of tasks that an ARQ worker claims for itself at a time; small, so that Julia's worker sends most of them
    arq_claims: int = 2

    def encode(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def drain(self) -> float:
        return 4 * self.slowness

    @property
    def settings(self) -> Settings:
        values = {"database_url": self.url, "tasks_backend": "arq", "redis_url": self.redis, "arq_max_jobs": 20}
        return Settings.model_validate({**values, "batuta_drain_seconds": self.drain, "log_format": "json"})


def office(plan: Plan) -> Batuta:
    work = build(plan.settings).work
    work.queue_lease = timedelta(seconds=2 * plan.slowness)

    @work.task(retry=[], queue="agendamentos")
    async def conta(ctx: TaskContext, seconds: float) -> None:
        note(plan, "begun", ctx.id)
        await asyncio.sleep(seconds)
        note(plan, "ended", ctx.id)

    return work


def note(plan: Plan, *words: str) -> None:
    """Append a line with a single write, so that the lines of several processes do not mix."""
    file = os.open(Path(plan.folder) / "runs", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(file, f"{' '.join(words)}\n".encode())
    finally:
        os.close(file)


def worker(encoded: Mapping[str, Any]) -> None:
    asyncio.run(_serve(_begun(encoded)))


async def _serve(plan: Plan) -> None:
    stop, work = asyncio.Event(), office(plan)
    begin_logging(work.events, plan.settings, service="worker", stream=sys.stdout, zone=work.zone)
    with stop_on_signals(stop):
        async with work:
            note(plan, "up", str(os.getpid()))
            await work.supervisor().run(stop, timedelta(seconds=plan.drain))


def arq(encoded: Mapping[str, Any]) -> None:
    plan = _begun(encoded)
    work = office(plan)
    work.worker_policy = replace(work.worker_policy, limit=plan.arq_claims)
    note(plan, "up", str(os.getpid()))
    run_worker(worker_settings(julia_of(work)))


def _begun(encoded: Mapping[str, Any]) -> Plan:
    plan = Plan(**encoded)
    log = os.open(Path(plan.folder) / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    return plan
