"""A rehearsal: the simulated WhatsApp, the API and the workers as processes on loopback. All use one clock, which may
run fast.

The demonstration and the fault tests use this module. Nothing is sent to other machines.
"""

import asyncio
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from app.composition.development.simulator import SIMULATED
from app.composition.envio import Pace
from app.composition.julia import julia_of
from app.contexts.mensagens.fila import FILA_MENSAGENS
from app.contexts.mensagens.limites import Limites, limites
from app.integrations.evolution.client import EVENTS, SECRET_HEADER
from app.main import build
from app.settings import Settings
from app.web.api import create_app
from batuta.engine.batuta import Batuta
from batuta.guard.rate import Limit
from batuta.kernel.storage.json import Json
from batuta.logs import begin_logging
from batuta.processes.address import listen
from batuta.processes.exit import stop_on_signals
from batuta.testing import FastClock
from batuta.web.api import serve
from simulador.comportamento import Comportamento
from simulador.main import create_app as simulated_app
from simulador.main import keeper

GRACE = timedelta(seconds=5)
# Value of the limits that a rehearsal does not set. It is so high that these limits never hold back a message.
WIDE = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Plano:
    """Settings of a rehearsal. Times are in seconds of its clock. With ``api=0``, no process receives the gateway's
    webhooks.

    At most ``most`` messages are sent in any period of length ``per``; the only other limits are those of the chips. If
    ``most`` is None, all limits of the product apply.
    """

    url: str
    folder: str
    clock: str
    simulador: int
    api: int = 0
    seed: int = 0
    instances: tuple[str, ...] = ()
    at_rest: Mapping[str, Any] = field(default_factory=dict)
    lease: float = 30.0
    looks_every: float = 5.0
    call_within: float = 2.0
    at_a_time: int = 10
    drain: float = 5.0
    most: int | None = WIDE
    per: float = 3600.0
    dies_at: str | None = None  # for tests: the point in the code at which the worker exits

    def encode(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def outside(self) -> str:
        return f"http://127.0.0.1:{self.simulador}"

    @property
    def settings(self) -> Settings:
        return Settings(
            database_url=SecretStr(self.url),
            evolution_api_url=f"{self.outside}/evolution",
            evolution_api_key=SecretStr(SIMULATED),
            webhook_secret=SecretStr(SIMULATED),
            port=self.api or 8000,
            log_format="json",
            optout_journal=str(Path(self.folder) / "optouts"),
        )

    @property
    def pace(self) -> Pace:
        within = timedelta(seconds=self.call_within)
        return Pace(limites=None if self.most is None else self._limites(self.most), call_within=within)

    def _limites(self, most: int) -> Limites:
        wide = limites(por_hora=WIDE, por_dia=WIDE, por_medico=WIDE, intervalo=timedelta(microseconds=1))
        hora = Limit(name="envios/hora", key="envios", most=most, per=timedelta(seconds=self.per))
        tipos = {tipo: replace(limit, most=WIDE) for tipo, limit in wide.tipos.items()}
        return replace(wide, hora=hora, tipos=tipos)


def plano_of(encoded: Mapping[str, Any]) -> Plano:
    return Plano(**{**encoded, "instances": tuple(encoded["instances"])})


def office(plano: Plano) -> Batuta:
    """Build Julia with the plan's clock, and return its engine."""
    work = build(plano.settings, clock=FastClock.from_text(plano.clock), pace=plano.pace).work
    work.queue_lease = timedelta(seconds=plano.lease)
    looks = timedelta(seconds=plano.looks_every)
    work.worker_policy = replace(work.worker_policy, look_every=looks)
    for name, served in work._app_queues.items():
        limit = plano.at_a_time if name == FILA_MENSAGENS.name else served.policy.limit
        work._app_queues[name] = served._replace(policy=replace(served.policy, look_every=looks, limit=limit))
    return work


def work(encoded: Mapping[str, Any]) -> None:
    """Run a worker process until it is stopped."""
    plano = plano_of(encoded)
    log_into(plano)
    asyncio.run(serve_queues(plano, office(plano)))


async def serve_queues(plano: Plano, work: Batuta) -> None:
    stop = asyncio.Event()
    begin_logging(work.events, plano.settings, service="worker", stream=sys.stdout, zone=work.zone)
    with stop_on_signals(stop):
        async with work:
            note(plano, "up", str(os.getpid()))
            await work.supervisor().run(stop, timedelta(seconds=plano.drain))


def answer(encoded: Mapping[str, Any]) -> None:
    """Run the API process, which receives the gateway's webhooks."""
    plano = plano_of(encoded)
    log_into(plano)
    asyncio.run(_answer(plano))


async def _answer(plano: Plano) -> None:
    stop, work = asyncio.Event(), office(plano)
    begin_logging(work.events, plano.settings, service="api", stream=sys.stdout, zone=work.zone)
    with stop_on_signals(stop):
        async with work:
            await serve(create_app(julia_of(work)), listen("127.0.0.1", plano.api), stop, GRACE)


def simulate(encoded: Mapping[str, Any]) -> None:
    plano = plano_of(encoded)
    log_into(plano)
    asyncio.run(_simulate(plano))


async def _simulate(plano: Plano) -> None:
    stop, clock = asyncio.Event(), FastClock.from_text(plano.clock)
    webhook: Mapping[str, Json] | None = None
    if plano.api:
        webhook = {
            "enabled": True,
            "url": f"http://127.0.0.1:{plano.api}/webhook/evolution",
            "headers": {SECRET_HEADER: SIMULATED},
            "events": list(EVENTS),
        }
    at_rest = Comportamento().changed(plano.at_rest)
    app = simulated_app(clock, seed=plano.seed, at_rest=at_rest, webhook=webhook, instances=plano.instances)
    with stop_on_signals(stop):
        listening = listen("127.0.0.1", plano.simulador)
        await asyncio.gather(serve(app, listening, stop, GRACE), keeper(app, clock).run(stop, GRACE))


def note(plano: Plano, *words: str) -> None:
    """Append one line with a single write, so that lines of several processes do not mix and a killed process leaves
    only complete lines.
    """
    file = os.open(Path(plano.folder) / "notes", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(file, f"{' '.join(words)}\n".encode())
    finally:
        os.close(file)


def log_into(plano: Plano) -> None:
    out = os.open(Path(plano.folder) / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(out, sys.stdout.fileno())
    os.dup2(out, sys.stderr.fileno())
