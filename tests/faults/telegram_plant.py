"""The simulated Telegram and the Telegram worker, as separate processes that a test kills and restarts.

The worker is monitored by a watchdog, as under ``batuta telegram``. Its loops and calls hang when a test requests it.
"""

import asyncio
import os
import re
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from app.composition.envio import Pace
from app.composition.julia import Julia
from app.composition.telegram.role import TELEGRAM_ROLE
from app.contexts.mensagens.limites import limites
from app.contexts.telegram.porta import Falha, Linha, Novidades, Peer, SendResult, Telegram
from app.main import build
from app.settings import Settings
from batuta.engine.process import ProcessLimits, guard_process
from batuta.errors import StartAgain
from batuta.kernel import SystemClock
from batuta.logs import begin_logging
from batuta.loops import Loop
from batuta.loops import Pace as LoopPace
from batuta.processes.address import listen
from batuta.processes.exit import stop_on_signals
from batuta.processes.loop_monitor import exit_now
from batuta.processes.restarts import EXIT_AGAIN
from batuta.testing import FastClock
from batuta.web.api import serve
from simulador.telegram.api import create_app
from tests.faults.ladder_plant import CATASTROPHE, Plan, is_cured, note, take_census

# Value of all limits. It is so high that they never hold back a message.
WIDE = 1_000_000


def simulate(port: int, journal: str, clock: str | None = None) -> None:
    """Serve the simulator until the process is killed. The simulator's journal preserves its state, from which the next
    process continues.
    """
    now = SystemClock() if clock is None else FastClock.from_text(clock)
    app = create_app(now, journal=Path(journal))
    asyncio.run(serve(app, listen("127.0.0.1", port), asyncio.Event(), timedelta(seconds=1)))


def work_off(plan: Mapping[str, Any]) -> None:
    """Run the Telegram worker until the process is killed. ``plan`` contains the worker's settings, such as its clock
    and its folder.
    """
    with (Path(plan["folder"]) / "log").open("ab", buffering=0) as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    asyncio.run(_work_off(plan))


def julia_at(plan: Mapping[str, Any]) -> Julia:
    """Build Julia from the settings in ``plan``, with the simulated Telegram, and with limits so high that they delay
    no message.
    """
    settings = Settings(
        database_url=plan["url"],
        telegram_simulador_url=f"http://127.0.0.1:{plan['port']}/telegram",
        telegram_session_keys="synthetic",
        optout_journal=f"{plan['folder']}/optouts",
        log_format="json",
        **plan.get("settings", {}),
    )
    wide = limites(por_hora=WIDE, por_dia=WIDE, por_medico=WIDE, intervalo=timedelta(microseconds=1))
    open_limits = replace(wide, tipos={tipo: replace(limit, most=WIDE) for tipo, limit in wide.tipos.items()})
    return build(settings, clock=FastClock.from_text(plan["clock"]), pace=Pace(limites=open_limits))


def place(plan: Mapping[str, Any]) -> Plan:
    """Return the settings that specify where this worker writes its notes."""
    return Plan(url=plan["url"], folder=plan["folder"])


async def _work_off(plan: Mapping[str, Any]) -> None:
    stop, julia, here = asyncio.Event(), julia_at(plan), place(plan)
    begin_logging(julia.work.events, julia.settings, service="telegram", stream=sys.stdout, zone=julia.work.zone)
    conexoes = julia.telegram.conexoes
    conexoes.telegram = FaultyTelegram(conexoes.telegram, here)
    limits = ProcessLimits(blocked=timedelta(seconds=plan.get("blocked", 15.0)))
    name, shows = TELEGRAM_ROLE.worker_name, TELEGRAM_ROLE.shows
    guard = guard_process(julia.work, "telegram", stop, limits=limits, worker_name=name, shows=shows)
    try:
        with stop_on_signals(stop):
            async with julia.work, guard as supervisor:
                for running in supervisor.running:
                    running.loop = FaultyLoop(running.loop, here)
                counting = asyncio.create_task(_count(here))
                note(here, "up")
                await supervisor.run(stop, timedelta(seconds=5))
                counting.cancel()
    except StartAgain:
        exit_now(EXIT_AGAIN)


async def _block() -> None:
    time.sleep(600)


async def _hold_the_interpreter() -> None:
    re.match(r"(a+)+$", CATASTROPHE)


async def _swallow() -> None:
    holding = asyncio.create_task(asyncio.to_thread(time.sleep, 600))
    while not holding.done():
        try:
            await asyncio.shield(holding)
        except asyncio.CancelledError:
            continue


WAYS: Mapping[str, Callable[[], Awaitable[None]]] = {
    "[bloqueia]": _block,
    "[expressao]": _hold_the_interpreter,
    "[surda]": _swallow,
}


async def _strike(here: Plan, words: str) -> None:
    """Hang once in each of the ways that ``words`` mentions."""
    for way, hang in WAYS.items():
        if way in words and not is_cured(here, way.strip("[]")):
            await hang()


class FaultyTelegram:
    """A Telegram client whose connections hang if a message text or the file ``receive`` requests it."""

    def __init__(self, telegram: Telegram, here: Plan) -> None:
        self._telegram = telegram
        self._here = here

    async def connect(self, conta: str, *, marca: str | None, limit: timedelta) -> Linha | Falha:
        made = await self._telegram.connect(conta, marca=marca, limit=limit)
        return made if isinstance(made, Falha) else FaultyLine(made, self._here)


class FaultyLine:
    def __init__(self, line: Linha, here: Plan) -> None:
        self._line = line
        self._here = here

    def __getattr__(self, name: str) -> Any:
        return getattr(self._line, name)

    async def send_text(self, peer: Peer, texto: str, **more: Any) -> SendResult:
        await _strike(self._here, texto)
        return await self._line.send_text(peer, texto, **more)

    async def receive(self, *, limit: timedelta) -> Novidades | Falha:
        asked = Path(self._here.folder) / "receive"
        await _strike(self._here, asked.read_text() if asked.exists() else "")
        return await self._line.receive(limit=limit)


class FaultyLoop:
    """A loop whose next tick sleeps forever if the file ``sleep-NAME`` exists."""

    def __init__(self, loop: Loop, here: Plan) -> None:
        self._loop = loop
        self._here = here
        self._asked = Path(here.folder) / f"sleep-{loop.name}"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    async def tick(self) -> LoopPace:
        is_asked = self._asked.exists()
        if is_asked and not is_cured(self._here, "sleep", self._loop.name):
            await asyncio.Event().wait()
        pace = await self._loop.tick()
        if is_asked:
            self._asked.unlink(missing_ok=True)
            note(self._here, "tick", self._loop.name)
        return pace


async def _count(here: Plan) -> None:
    while True:
        take_census(here)
        await asyncio.sleep(0.5)
