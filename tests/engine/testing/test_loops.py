"""The helpers with which an application's tests drive the application's own loops."""

import asyncio
from pathlib import Path

import pytest

from batuta import Batuta, Idle
from batuta.kernel.errors import UnknownWord
from batuta.kernel.events import LoopFailed, LoopRecovered, LoopRestarted
from batuta.testing import EventRecorder, FakeClock, Puppet, loops_of, supervise, tick


@pytest.fixture
def sent() -> list[str]:
    return []


@pytest.fixture
def work(tmp_path: Path, clock: FakeClock, sent: list[str]) -> Batuta:
    made = Batuta(f"sqlite:///{tmp_path}/work.db", clock=clock)

    @made.loop(every=2, stuck_after=60)
    async def outbound() -> None:
        sent.append("message")

    return made


async def test_tick_runs_once_without_a_supervisor(work: Batuta, sent: list[str]) -> None:
    async with work:
        assert await tick(work, "outbound") == Idle()
    assert sent == ["message"]


async def test_unknown_loop_is_refused_with_the_nearest(work: Batuta) -> None:
    with pytest.raises(UnknownWord, match="did you mean outbound"):
        await tick(work, "outbond")


async def test_hanging_loop_is_restarted_and_recovers(
    work: Batuta, clock: FakeClock, events: EventRecorder, sent: list[str]
) -> None:
    outbound = Puppet(*loops_of(work)["outbound"])
    async with supervise(outbound, clock=clock, events=events):
        assert sent == ["message"]
        outbound.hang()
        await clock.advance(60)
        assert (await events.wait_for(LoopRestarted)).loop == "outbound"
        await clock.advance(3)
        assert (await events.wait_for(LoopRecovered)).failures == 1
        assert len(sent) == 3


async def test_failing_loop_backs_off(work: Batuta, clock: FakeClock, events: EventRecorder) -> None:
    outbound = Puppet(*loops_of(work)["outbound"])
    async with supervise(outbound, clock=clock, events=events):
        outbound.fail(OSError("away"), OSError("away"))
        await clock.advance(4)
    assert [each.again_in.total_seconds() for each in events.of(LoopFailed)] == [1, 2]
    assert outbound.ticks == 4


async def test_loop_that_hangs_at_the_end_of_a_test_does_not_block_it(
    work: Batuta, clock: FakeClock, events: EventRecorder
) -> None:
    outbound, before = Puppet(*loops_of(work)["outbound"]), asyncio.all_tasks()
    async with supervise(outbound, clock=clock, events=events):
        outbound.hang(times=100)
        await clock.advance(10)
        supervised = asyncio.all_tasks() - before
    assert supervised
    assert all(task.done() for task in supervised)
