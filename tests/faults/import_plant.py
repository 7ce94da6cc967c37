"""The Julia processes that an import needs: the api, a worker and an ARQ worker, all on the same fast clock."""

import asyncio
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from arq.worker import run_worker

from app.composition import agendamentos
from app.composition.arq import worker_settings
from app.composition.julia import julia_of
from app.contexts.agendamentos.planilha.processo import READ_WITHIN, LeitorDeArquivos
from app.main import build
from app.settings import Settings
from app.web.api import create_app
from batuta.engine.batuta import Batuta
from batuta.logs import begin_logging
from batuta.processes.address import listen
from batuta.processes.exit import stop_on_signals
from batuta.testing import FastClock
from batuta.web.api import serve

GRACE = timedelta(seconds=5)
TOKEN = "ensaio-0123456789abcdef"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Settings for the processes. ``lease`` is in seconds of their fast clock. If ``redis`` is None, tasks run on the
    SQL queue.
    """

    url: str
    folder: str
    clock: str
    api: int
    redis: str | None = None
    lease: float = 10.0

    def encode(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def settings(self) -> Settings:
        values: dict[str, Any] = {"database_url": self.url, "api_token": TOKEN, "port": self.api, "log_format": "json"}
        arq = {"tasks_backend": "arq", "redis_url": self.redis, "arq_max_jobs": 20}
        return Settings.model_validate(values if self.redis is None else values | arq)


def office(plan: Plan) -> Batuta:
    clock = FastClock.from_text(plan.clock)
    # The process that reads the file works at real speed, so its limit is multiplied by the clock's rate.
    vars(agendamentos)["LeitorDeArquivos"] = partial(LeitorDeArquivos, read_within=clock.rate * READ_WITHIN)
    work = build(plan.settings, clock=clock).work
    work.queue_lease = timedelta(seconds=plan.lease)
    return work


def api(encoded: Mapping[str, Any]) -> None:
    plan = _begun(encoded)
    asyncio.run(_answer(plan))


async def _answer(plan: Plan) -> None:
    stop, work = asyncio.Event(), office(plan)
    begin_logging(work.events, plan.settings, service="api", stream=sys.stdout, zone=work.zone)
    with stop_on_signals(stop):
        async with work:
            await serve(create_app(julia_of(work)), listen("127.0.0.1", plan.api), stop, GRACE)


def worker(encoded: Mapping[str, Any]) -> None:
    plan = _begun(encoded)
    asyncio.run(_serve(plan))


async def _serve(plan: Plan) -> None:
    stop, work = asyncio.Event(), office(plan)
    begin_logging(work.events, plan.settings, service="worker", stream=sys.stdout, zone=work.zone)
    with stop_on_signals(stop):
        async with work:
            await work.supervisor().run(stop, GRACE)


def arq(encoded: Mapping[str, Any]) -> None:
    plan = _begun(encoded)
    run_worker(worker_settings(julia_of(office(plan))))


def _begun(encoded: Mapping[str, Any]) -> Plan:
    plan = Plan(**encoded)
    log = os.open(Path(plan.folder) / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    return plan
