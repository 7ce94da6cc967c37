"""Soak test for the Telegram worker with many accounts and messages and with random faults. The results must meet the
success criteria.

The worker never hangs and never needs an operator. Sending is fast. Memory, descriptors and tasks do not grow.
"""

import asyncio
import contextlib
import random
import statistics
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.faults.figures import LONG, Figures, kind
from tests.faults.ladder_harness import require_flat
from tests.faults.telegram_harness import Account, TelegramOffice, batched, p99, telegram_office
from tests.faults.waiting import slowness, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

ACCOUNTS, MESSAGES, SERVER_KILLS = (50, 20_000, 4) if LONG else (6, 60, 1)
PER_DOCTOR = 4  # below the weekly limit of a doctor
# Accounts that no fault affects. Their sends must meet the limit for latency.
STEADY = ACCOUNTS // 5
FAULTS: tuple[dict[str, Any], ...] = (
    {"hang": True},
    {"down": True},
    {"dropped": 0.3},
    {"lost_answers": 0.3},
    {"server_error": 0.3},
    {"slow_seconds": 1.0},
    {"flood_wait": 10},
    {"slow_mode": 5},
    {"silent": True},
    {"skipped_updates": 0.5, "repeated_updates": 0.5, "reply_share": 0.5},
    {"duplicate_error": True, "lost_answers": 0.3},
)
CALM: dict[str, Any] = {
    "hang": False,
    "down": False,
    "dropped": 0.0,
    "lost_answers": 0.0,
    "server_error": 0.0,
    "slow_seconds": 0.0,
    "flood_wait": 0,
    "slow_mode": 0,
    "silent": False,
    "skipped_updates": 0.0,
    "repeated_updates": 0.0,
    "reply_share": 0.0,
    "duplicate_error": False,
}
# A send shortly after the server was killed waits until its account has a new connection.
AFTER_A_KILL = timedelta(seconds=60 if LONG else 0)
RATE = 1.0 if LONG else 5.0
# Each account sends one message per pace: the load is far above that of a real account, and constant.
PACE = 3.0 if LONG else 0.2


@dataclass
class Nature:
    """Causes faults at random times and keeps measuring the worker's health."""

    office: TelegramOffice
    chance: random.Random
    struck: int = 0
    kills: list[float] = field(default_factory=list)
    samples: list[bool] = field(default_factory=list)

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(each) for each in (self._strike(), self._kill(), self._look())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            endings = await asyncio.gather(*tasks, return_exceptions=True)
            for account in self.office.accounts:
                await self.office.server.behave(account.usuario, **CALM)
        assert all(each is None or isinstance(each, asyncio.CancelledError) for each in endings), endings

    async def _strike(self) -> None:
        """For a while, cause faults in some accounts, one after another."""
        others = self.office.accounts[STEADY:]
        async with asyncio.TaskGroup() as group:
            for some in batched(others, 4):
                group.create_task(self._strike_in_turn(some))

    async def _strike_in_turn(self, victims: Sequence[Account]) -> None:
        while True:
            victim, fault = self.chance.choice(victims), self.chance.choice(FAULTS)
            await self._behave(victim, fault)
            self.struck += 1
            await asyncio.sleep(self.chance.uniform(*((5, 40) if LONG else (0.5, 2))))
            await self._behave(victim, CALM)
            await asyncio.sleep(self.chance.uniform(*((5, 60) if LONG else (0.5, 1))))

    async def _behave(self, victim: Account, how: dict[str, Any]) -> None:
        with contextlib.suppress(httpx2.HTTPError):  # the server is being killed
            await self.office.server.behave(victim.usuario, **how)

    async def _kill(self) -> None:
        for n in range(SERVER_KILLS):
            wanted = (n + 1) * MESSAGES // (SERVER_KILLS + 1)
            await until("messages are queued", partial(self._queued, wanted), within=7200)
            self.kills.append(self.office.now().timestamp())
            await self.office.server.kill()
            await self.office.server.start()

    async def _queued(self, count: int) -> bool:
        return len(self.office.accepted) >= count

    async def _look(self) -> None:
        """Check once a second whether the worker is healthy: its heartbeat is recent and no loop is silent."""
        while True:
            now = self.office.now()
            beats = await self.office.heartbeats()
            fresh = [each for each in beats if now - each["last_heartbeat_at"] < timedelta(seconds=45)]
            self.samples.append(any(each["status"] == "online" for each in fresh))
            await asyncio.sleep(1)


@pytest.mark.calm
async def test_soak_has_no_hangs_no_losses_and_no_growth(places: dict[str, Path]) -> None:
    url, folder = max(places.items(), key=lambda place: place[0].startswith("sqlite"))
    figures = Figures(
        "soak",
        kind(url),
        f"Telegram: {ACCOUNTS} accounts send {MESSAGES} messages, each account one message every {PACE:g} s, while random faults"
        " occur",
    )
    async with telegram_office(folder, url, accounts=ACCOUNTS, doctors=MESSAGES // PER_DOCTOR, rate=RATE) as office:
        office.start_worker()
        await until("all accounts are connected", lambda: office.connected(ACCOUNTS))
        before = await _level(office)
        nature = Nature(office, random.Random(20261117))
        async with nature.at_work():
            began = time.monotonic()
            for turn in range(MESSAGES // STEADY):
                await office.put(STEADY, at_once=True)
                await asyncio.sleep(max(0.0, began + (turn + 1) * PACE * STEADY / ACCOUNTS - time.monotonic()))
        ended = time.monotonic()
        await office.until_sent()
        healed, tally, states = time.monotonic() - ended, await office.tally(), await office.states()
        # For a while, an account that reconnects has a few more descriptors and tasks. The short form is too short to
        # compare thirds of the run, so it checks only the level after the faults.
        flat = require_flat(office.notes("census"), most=ACCOUNTS) if LONG else ""
        await until("descriptors, tasks and threads are back at their level", partial(_is_back, office, before))
        hangs = [await office.restarts(each) for each in ("stuck", "blocked", "uncancellable")]
        steady = await office.latencies(_steady(office, nature))
        uptime = sum(nature.samples) / len(nature.samples)
        figures.record_items(
            tally,
            f"faults: {nature.struck}; kills of the server: {len(nature.kills)}; hangs: {sum(map(len, hangs))}; latency of"
            f" accounts without a fault: p50 {statistics.median(steady):.2f} s, p99 {p99(steady):.2f} s; uptime: {uptime:.1%};"
            f" manual recoveries: 0; all messages were sent {healed:.0f} s after the last fault; {flat}",
        )
        assert (tally.lost, tally.doubled, states) == (0, 0, {"enviada/-": MESSAGES})
        assert (sum(map(len, hangs)), office.exits) == (0, [])
        # On a busy machine a heartbeat may be late, and every send waits for others.
        assert not LONG or uptime > 0.99
        assert p99(steady) < (5 if LONG else 30 * slowness())


async def _level(office: TelegramOffice) -> list[int]:
    """Wait for the worker's next count of its descriptors, tasks and threads, and return the three numbers."""
    seen = len(office.notes("census"))
    await until("the worker is counted", partial(office.noted, "census", count=seen + 1))
    return [int(word) for word in office.notes("census")[-1][2:5]]


async def _is_back(office: TelegramOffice, before: Sequence[int]) -> bool:
    return all(now <= then + ACCOUNTS for now, then in zip(await _level(office), before, strict=True))


def _steady(office: TelegramOffice, nature: Nature) -> list[str]:
    """Return the messages of accounts without faults, except those queued around the time when the server was
    killed.
    """
    chosen = []
    for n, (id, queued) in enumerate(office.accepted.items()):
        is_after = any(-5 < queued - kill < AFTER_A_KILL.total_seconds() for kill in nature.kills)
        if n % ACCOUNTS < STEADY and not is_after:
            chosen.append(id)
    return chosen
