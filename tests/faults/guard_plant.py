"""Senders protected by guards, running as real processes on one database."""

import asyncio
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from batuta import Batuta
from batuta.guard.base import Admit, Effect, EffectReport, Guard, Hold, effect_of_error, effect_of_status
from batuta.guard.rate import Limit, RateGuard
from batuta.processes.exit import stop_on_signals
from batuta.queue.outcome import Done, Failed, FullJitter, Snooze
from batuta.targets.http import retry_at
from batuta.tasks.task import TaskContext

ACCOUNTS = ("a", "b", "c")
SOONEST = 0.002


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Settings for the senders. Times are in seconds."""

    url: str
    folder: str
    port: int
    # "rate": limited by rates; "breaker": protected by a circuit breaker; "tasks": a worker whose tasks a circuit
    # breaker protects
    way: str
    senders: int = 2  # number of senders per account and process
    most: int = 10
    per: float = 2.0
    use_within: float = 5.0
    failures: int = 3
    reset: float = 2.0
    longest_reset: float = 4.0
    probe_within: float = 2.0
    rests: float = 0.02  # pause between two calls of a sender with a circuit breaker

    def encode(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def account(self) -> Limit:
        return Limit(name="account", key="account", most=self.most, per=timedelta(seconds=self.per), each=True)

    @property
    def together(self) -> Limit:
        most = self.most * len(ACCOUNTS)
        return Limit(name="all", key="all", most=most, per=timedelta(seconds=self.per))


def run(encoded: Mapping[str, Any]) -> None:
    plan = Plan(**encoded)
    out = os.open(Path(plan.folder) / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(out, sys.stdout.fileno())
    os.dup2(out, sys.stderr.fileno())
    asyncio.run(_live(plan))


async def _live(plan: Plan) -> None:
    stop = asyncio.Event()
    work = build(plan)
    with stop_on_signals(stop):
        async with work:
            if plan.way == "tasks":
                await work.supervisor().run(stop, timedelta(seconds=5))
                return
            senders = [
                asyncio.create_task(_send(work, plan, account)) for account in ACCOUNTS for _ in range(plan.senders)
            ]
            await stop.wait()
            for sender in senders:
                sender.cancel()
            await asyncio.gather(*senders, return_exceptions=True)


def build(plan: Plan) -> Batuta:
    work = Batuta(plan.url, timezone="UTC", concurrency=50)
    work.queue_lease = timedelta(seconds=2)
    work.circuit(
        "gateway",
        failures=plan.failures,
        reset=plan.reset,
        longest_reset=plan.longest_reset,
        probe_within=plan.probe_within,
    )

    @work.task(retry=FullJitter(retries=100, base=timedelta(seconds=1), cap=timedelta(seconds=plan.reset)), timeout=30)
    async def chama(ctx: TaskContext) -> Done | Snooze | Failed:
        verdict = await work.circuits.breaker("gateway").admit(work.clock.now())
        if isinstance(verdict, Hold):
            return Snooze(verdict.until, verdict.reason)
        report = await Line(work, plan).call("task", 1)
        await verdict.ticket.report(report)
        return Done() if report.effect is Effect.WORKED else Failed(report.error)

    return work


async def _send(work: Batuta, plan: Plan, account: str) -> None:
    limits = (plan.together, plan.account.of(account))
    within = timedelta(seconds=plan.use_within)
    guard: Guard = (
        RateGuard(rates=work.rates, limits=limits, use_within=within)
        if plan.way == "rate"
        else work.circuits.breaker("gateway")
    )
    line, asked = Line(work, plan), 0
    while True:
        now = work.clock.now()
        asked += 1
        match await guard.admit(now):
            case Hold(until=until):
                await asyncio.sleep(max(SOONEST, (until - now).total_seconds()))
            case Admit(ticket=ticket, by=by) if by is not None and work.clock.now() >= by:
                await ticket.give_back()
            case Admit(ticket=ticket):
                await ticket.report(await line.call(account, asked))
                asked = 0
                await asyncio.sleep(0 if plan.way == "rate" else plan.rests)


class Line:
    """A minimal HTTP connection for one sender. Hundreds of senders share two cores, and complete HTTP clients would
    use too much processor time.
    """

    def __init__(self, work: Batuta, plan: Plan) -> None:
        self._work = work
        self._plan = plan
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def call(self, account: str, asked: int) -> EffectReport:
        try:
            self._streams = self._streams or await asyncio.open_connection("127.0.0.1", self._plan.port)
        except OSError as error:
            return EffectReport(effect_of_error(error), type(error).__name__)
        reader, writer = self._streams
        try:
            headers = f"x-account: {account}\r\nx-process: {os.getpid()}\r\nx-asked: {asked}"
            writer.write(f"POST / HTTP/1.1\r\nhost: here\r\n{headers}\r\ncontent-length: 0\r\n\r\n".encode())
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            await reader.readexactly(2)
        except (OSError, asyncio.IncompleteReadError) as error:
            self._streams = None
            return EffectReport(Effect.BROKE, type(error).__name__)
        status = int(head[0].split(" ")[1])
        later = next((line.partition(":")[2].strip() for line in head if line.startswith("retry-after")), "")
        return EffectReport(effect_of_status(status), f"HTTP {status}", retry_at(later, self._work.clock.now()))
