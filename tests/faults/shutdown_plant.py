"""An application whose processes receive a stop signal at an inconvenient moment: ``--app
tests.faults.shutdown_plant:work``.

``SHUTDOWN_PLAN`` contains the plan as JSON. Handlers and runs append a line to the file ``notes`` when they begin and
when they end.
"""

import asyncio
import json
import os
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from batuta import Batuta
from batuta.config import EngineSettings, environment, load_settings
from batuta.queue.outcome import Done, Outcome
from batuta.receive.endpoints import JobCall

VARIABLE = "SHUTDOWN_PLAN"
QUEUES = ("first", "second")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Settings for the application. Times are in seconds. A loop or job whose time is 0 is omitted."""

    notes: str
    lease: float = 30.0
    poll: float = 0.0  # duration of a tick of a loop without a drain
    tick: float = 0.0  # duration of a tick of a loop with a drain
    run: float = 0.0  # duration of a scheduled function
    request: float = 0.0  # delay of an endpoint, /jobs/wait
    is_uncancellable: bool = False  # handlers and drains ignore cancellation


def build(plan: Plan, settings: EngineSettings) -> Batuta:
    work = Batuta(settings.database_url.get_secret_value(), settings=settings, timezone="UTC")
    work.queue_lease = timedelta(seconds=plan.lease)
    for queue in QUEUES:
        work.task(name=queue, queue=queue, timeout=600, retry=[])(_handler(plan))
    if plan.poll:
        work.loop(every=0.1, name="poll")(_poll(plan))
    if plan.tick:
        work.loop(every=0.1, name="slow", stuck_after=300)(_slow(plan))
    if plan.run:
        work.job("0 * * * *", name="report")(_report(plan))
    if plan.request:
        work.endpoints.add("wait", _wait(plan), manual=True)
    return work


def note(plan: Plan, *words: object) -> None:
    """Append a line with a single write, so that the lines of several processes do not mix."""
    file = os.open(Path(plan.notes), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(file, f"{' '.join(map(str, words))}\n".encode())
    finally:
        os.close(file)


def _handler(plan: Plan):  # type: ignore[no-untyped-def]
    async def handler(number: int, seconds: float) -> None:
        note(plan, "begin", number, os.getpid())
        await _sleep(plan, seconds)
        note(plan, "effect", number, os.getpid())

    return handler


async def _sleep(plan: Plan, seconds: float) -> None:
    ends = time.monotonic() + seconds
    while (left := ends - time.monotonic()) > 0:
        try:
            await asyncio.sleep(left)
        except asyncio.CancelledError:
            if not plan.is_uncancellable:
                raise


def _poll(plan: Plan):  # type: ignore[no-untyped-def]
    async def poll() -> None:
        note(plan, "poll", os.getpid())
        await asyncio.sleep(plan.poll)

    return poll


def _slow(plan: Plan) -> type:
    class Slow:
        async def tick(self) -> None:
            note(plan, "tick", os.getpid())
            await asyncio.sleep(plan.tick)

        async def drain(self, grace: timedelta) -> None:
            note(plan, "drain", os.getpid())
            if plan.is_uncancellable:
                await _sleep(plan, 120)

    return Slow


def _report(plan: Plan):  # type: ignore[no-untyped-def]
    async def report() -> None:
        note(plan, "begin", "report", os.getpid())
        await asyncio.sleep(plan.run)
        note(plan, "effect", "report", os.getpid())

    return report


def _wait(plan: Plan):  # type: ignore[no-untyped-def]
    async def wait(call: JobCall) -> Outcome:
        note(plan, "request", os.getpid())
        await asyncio.sleep(plan.request)
        return Done(items=1)

    return wait


def __getattr__(name: str) -> object:
    if name != "work":
        raise AttributeError(name)
    env = environment()
    return build(Plan(**json.loads(env[VARIABLE])), load_settings(EngineSettings, env))
