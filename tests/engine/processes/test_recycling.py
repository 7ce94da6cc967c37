"""A process stops as soon as it notices that its database file is lost. If its work does not end within the grace
period, the process exits without waiting for the work.
"""

import pytest

from batuta.kernel.errors import StoreReplaced
from batuta.processes.exit import REPLACED_FILE_GRACE, FileWatch
from batuta.processes.restarts import EXIT_AGAIN
from batuta.supervise.loop import Idle
from batuta.testing import FakeClock


class Process:
    def __init__(self) -> None:
        self.is_lost = False
        self.stops = 0
        self.forced = 0
        self.codes: list[int] = []

    def check(self) -> None:
        if self.is_lost:
            raise StoreReplaced(where="here.db", what="deleted")

    def stop(self) -> None:
        self.stops += 1

    def force(self, error: StoreReplaced) -> None:
        self.forced += 1


@pytest.fixture
def process() -> Process:
    return Process()


@pytest.fixture
def watch(process: Process, clock: FakeClock) -> FileWatch:
    return FileWatch(
        check=process.check, stop=process.stop, clock=clock, forced=process.force, exit=process.codes.append
    )


async def test_process_with_its_file_in_place_continues(watch: FileWatch, process: Process) -> None:
    assert await watch.tick() == Idle()
    assert (process.stops, process.codes, watch.lost) == (0, [], None)


async def test_lost_file_stops_the_process_once_and_ends_it_after_the_grace_period(
    watch: FileWatch, process: Process, clock: FakeClock
) -> None:
    process.is_lost = True
    await watch.tick()
    await watch.tick()
    assert (process.stops, process.codes) == (1, [])
    assert watch.lost is not None
    await clock.advance(REPLACED_FILE_GRACE.total_seconds())
    await watch.tick()
    assert (process.stops, process.forced, process.codes) == (1, 1, [EXIT_AGAIN])
