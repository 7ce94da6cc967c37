"""Guards protect a service that is down, partly down or flapping, or that asks its callers to wait. The service's own
record of calls shows whether the guards held calls back.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

from batuta.guard.breaker import CircuitState, Transition
from batuta.guard.circuits import LOOK_EVERY
from tests.faults.conftest import together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.guard_harness import Behaviour, Senders, broken, senders, well

PROCESSES = 4
# Half a second until a process reads the state that another process wrote. The rest allows for a slow machine.
KNOWN_AFTER = LOOK_EVERY + timedelta(milliseconds=700)


async def test_processes_together_probe_a_service_that_is_down_once_per_reset(
    places: Mapping[str, Path],
) -> None:
    await together(*(_down(url, folder) for url, folder in places.items()))


async def _down(url: str, folder: Path) -> None:
    reset, longest, seconds = (30.0, 60.0, 150.0) if LONG else (2.0, 4.0, 8.0)
    figures = Figures(
        "T44",
        kind(url),
        f"{PROCESSES} processes call a service that is down, and are killed; then the service works again",
    )
    options = {"reset": reset, "longest_reset": longest, "probe_within": 2.0, "rests": 0.1}
    async with senders(folder, url, way="breaker", **options) as running:
        running.endpoint.behaves = broken
        running.begin(PROCESSES)
        await running.until("they call", lambda: bool(running.endpoint.receipts))
        await running.storm(seconds, seconds / 5, random.Random(20260105))
        running.endpoint.behaves = well
        well_from = datetime.now(UTC)
        await running.until(
            "it is found out",
            lambda: sum(receipt.at > well_from for receipt in running.endpoint.receipts) > 50,
        )
        history = await _history(running)
        probes, early = _judge(running, history)
        took = next(each.at for each in history if each.after is CircuitState.CLOSED) - well_from
        figures.record_bare(
            len(running.endpoint.receipts),
            f"probes in {seconds:g} s: {probes}, at most one in each reset period; calls while the breaker was open: {early}; "
            f"the breaker closed {took.total_seconds():.1f} s after the service worked again; kills: {running.killed}",
            wrong=early,
        )
        assert early == 0
        assert probes >= 2


async def test_flapping_or_half_failing_service_never_gets_two_probes_at_once(places: Mapping[str, Path]) -> None:
    await together(*(_flapping(url, folder) for url, folder in places.items()))


async def _flapping(url: str, folder: Path) -> None:
    seconds = 40.0 if LONG else 8.0
    figures = Figures(
        "T44",
        kind(url),
        f"{PROCESSES} processes call a service that fails and works in turn, and then fails for half of the calls",
    )
    chance = random.Random(20260105)

    def flapping(at: datetime) -> tuple[int, int | None]:
        return (503 if at.second % 2 else 200), None

    def half(at: datetime) -> tuple[int, int | None]:
        return (503 if chance.random() < 0.5 else 200), None

    async with senders(folder, url, way="breaker", reset=1.0, longest_reset=2.0, rests=0.05) as running:
        ways: tuple[Behaviour, ...] = (flapping, half)
        running.begin(PROCESSES)
        for way in ways:
            running.endpoint.behaves = way
            await asyncio.sleep(seconds / 2)
        history = await _history(running)
        probes, early = _judge(running, history)
        states = Counter(each.after.value for each in history)
        figures.record_bare(
            len(running.endpoint.receipts),
            f"the breaker opened {states['open']} times; probes: {probes}; calls while it was open: {early}",
            wrong=early,
        )
        assert early == 0
        assert states["open"] >= 2


async def test_no_process_calls_a_service_before_its_retry_after(places: Mapping[str, Path]) -> None:
    await together(*(_later(url, folder) for url, folder in places.items()))


async def _later(url: str, folder: Path) -> None:
    asked, seconds = (20, 60.0) if LONG else (3, 8.0)
    figures = Figures(
        "T44", kind(url), f"{PROCESSES} processes call a service that answers 429 with `Retry-After: {asked}`"
    )
    async with senders(folder, url, way="breaker", failures=10_000, reset=1.0, rests=0.1) as running:
        running.begin(PROCESSES)
        await running.until("they call", lambda: len(running.endpoint.receipts) > 20)
        running.endpoint.behaves = lambda at: (429, asked)
        refused_at = datetime.now(UTC)
        await asyncio.sleep(seconds)
        receipts = [receipt for receipt in running.endpoint.receipts if receipt.status == 429]
        calls = sorted(receipt.at for receipt in receipts)
        waves = [calls[0], *(later for sooner, later in pairwise(calls) if later - sooner > KNOWN_AFTER)]
        early = sum(later - sooner < timedelta(seconds=asked) for sooner, later in pairwise(waves))
        figures.record_bare(
            len(calls),
            f"rounds of calls in {(calls[-1] - refused_at).total_seconds():.1f} s: {len(waves)}; early calls: {early}",
            wrong=early,
        )
        assert early == 0
        assert len(waves) >= 2


async def test_held_tasks_return_at_different_times(places: Mapping[str, Path]) -> None:
    await together(*(_crowd(url, folder) for url, folder in places.items()))


async def _crowd(url: str, folder: Path) -> None:
    tasks, reset = (10_000, 30.0) if LONG else (600, 4.0)
    figures = Figures("T44", kind(url), f"{tasks} tasks call a service that is down and later works again")
    async with senders(folder, url, way="tasks", reset=reset, longest_reset=reset, failures=3) as running:
        running.endpoint.behaves = broken
        await running.work.enqueue_many("chama", [()] * tasks)
        running.begin(2)
        opened = lambda: sum(receipt.status == 503 for receipt in running.endpoint.receipts) >= 3  # noqa: E731
        await running.until("it opens", opened)
        await asyncio.sleep(1.0)
        while_down = len(running.endpoint.receipts)
        running.endpoint.behaves = well
        done = lambda: sum(receipt.status == 200 for receipt in running.endpoint.receipts) >= tasks  # noqa: E731
        await running.until("all are through", done)
        calls = sorted(receipt.at for receipt in running.endpoint.receipts if receipt.status == 200)
        span = (calls[-1] - calls[0]).total_seconds()
        busiest = max(Counter(int((call - calls[0]).total_seconds()) for call in calls).values())
        mean = tasks / max(1.0, min(span, reset))
        figures.record_bare(
            tasks,
            f"calls while the service was down: {while_down}; afterwards, all calls were made within {span:.1f} s;"
            f" calls per second: mean {mean:.0f}, most {busiest}",
        )
        assert while_down < 150  # calls that were in progress when the circuit opened
        assert busiest <= 2 * mean


async def _history(running: Senders) -> list[Transition]:
    history = await running.work.circuits.history("gateway", datetime.now(UTC) - timedelta(hours=1))
    return list(reversed(history))


def _judge(running: Senders, history: list[Transition]) -> tuple[int, int]:
    """Count the probes, and the calls that the circuit should have held back.

    While the circuit is open, the only calls allowed are those already in progress and those from processes that do not
    know the new state yet. While it is half open, one call is allowed.
    """
    calls = sorted(receipt.at for receipt in running.endpoint.receipts)
    probes, wrong = 0, 0
    for sooner, later in pairwise(history):
        inside = [call for call in calls if sooner.at < call < later.at]
        if sooner.after is CircuitState.OPEN and sooner.before is CircuitState.CLOSED:
            wrong += sum(call > sooner.at + KNOWN_AFTER for call in inside)
        elif sooner.after is CircuitState.OPEN:
            wrong += len(inside)
        elif sooner.after is CircuitState.HALF_OPEN:
            probes += 1
            # A probe whose process was killed before it reported is replaced when its lease expires.
            lease = timedelta(seconds=running.plan.probe_within)
            wrong += sum(second - first < lease for first, second in pairwise(inside))
    return probes, wrong
