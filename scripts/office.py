"""Run Julia in one process with a clock that jumps: the API on loopback, the scheduled jobs and the queues.

The demonstration controls the process through a pipe. The demonstration sends an instant, and the process moves its
clock there and does all due work. The Telegram accounts are connected only for some jumps, if the demonstration
requests it, and are disconnected before the next jump, which would break their connections. The module is also an
application for commands: ``python -m batuta --app scripts.office:work …`` with the plan in DEMO_PLAN.
"""

import asyncio
import json
import os
import sys
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from app.composition.development.simulator import SIMULATED
from app.composition.julia import julia_of
from app.contexts.telegram.conexoes import Conexoes
from app.main import build
from app.settings import Settings
from app.web.api import create_app
from batuta.engine.batuta import Batuta
from batuta.logs import begin_logging
from batuta.processes.address import listen
from batuta.testing import JumpClock, Simulation
from batuta.web.api import serve

GRACE = timedelta(seconds=5)
PLAN = "DEMO_PLAN"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Settings of Julia's process in the demonstration: the folder, the ports, and the instant at which the process's
    clock starts.
    """

    folder: str
    port: int
    simulador: int
    telegram: int
    starts: str

    @property
    def settings(self) -> Settings:
        outside = f"http://127.0.0.1:{self.simulador}"
        return Settings(
            app_env="development",
            database_url=SecretStr(f"sqlite:///{self.folder}/demo.db"),
            evolution_api_url=f"{outside}/evolution",
            evolution_api_key=SecretStr(SIMULATED),
            webhook_secret=SecretStr(SIMULATED),
            telegram_simulador_url=f"http://127.0.0.1:{self.telegram}/telegram",
            telegram_session_keys=SecretStr(SIMULATED),
            secret_key=SecretStr(SIMULATED * 4),
            public_url=f"http://127.0.0.1:{self.port}",
            slack_webhook_url=SecretStr(f"{outside}/slack/equipe"),
            schedule_profile="janelas",
            pilot_mode=False,
            oferta_automatica_enabled=True,
            port=self.port,
            log_format="json",
            log_level="WARNING",
            optout_journal=str(Path(self.folder) / "optouts"),
        )

    def encode(self) -> dict[str, Any]:
        return asdict(self)


def office(plan: Plan) -> tuple[Batuta, JumpClock]:
    clock = JumpClock(datetime.fromisoformat(plan.starts))
    return build(plan.settings, clock=clock).work, clock


def __getattr__(name: str) -> Batuta:
    if name != "work" or PLAN not in os.environ:
        raise AttributeError(name)
    return office(Plan(**json.loads(os.environ[PLAN])))[0]


def run(encoded: dict[str, Any], pipe: Connection) -> None:
    """Run Julia in this process until the demonstration sends None through the pipe."""
    plan = Plan(**encoded)
    out = os.open(Path(plan.folder) / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(out, sys.stdout.fileno())
    os.dup2(out, sys.stderr.fileno())
    asyncio.run(_run(plan, pipe))


async def _run(plan: Plan, pipe: Connection) -> None:
    (work, clock), stop = office(plan), asyncio.Event()
    begin_logging(work.events, plan.settings, service="julia", stream=sys.stdout, zone=work.zone)
    async with work, Simulation(work, clock) as simulation:
        serving = asyncio.create_task(serve(create_app(julia_of(work)), listen("127.0.0.1", plan.port), stop, GRACE))
        while (order := await asyncio.to_thread(pipe.recv)) is not None:
            instant, works, on_telegram = order
            clock.jump_to(instant)
            if on_telegram:
                await connect_accounts(julia_of(work).telegram.conexoes)
            if works:
                await simulation.settle()
            if on_telegram:
                await julia_of(work).telegram.conexoes.drain(GRACE)
            pipe.send(clock.now())
        stop.set()
        await serving


async def connect_accounts(conexoes: Conexoes) -> None:
    """Connect the active Telegram accounts, and store the updates that arrived since the last connection."""
    await conexoes.tick()
    await conexoes.finish_steps()
