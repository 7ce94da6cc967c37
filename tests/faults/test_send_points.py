"""A worker exits at every step of sending a message. Its unfinished sends are reconciled, and nothing is sent twice."""

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from tests.faults import send_plant
from tests.faults.conftest import together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.points import GONE
from tests.faults.send_harness import SendingWorkers, revive, sending_workers, tally
from tests.faults.waiting import TIMEOUT
from tests.judges.messages import End

RATE = 8.0
CONCURRENCY = 5
FOLLOWS = "left>confirm>went>count_on_doctor>count_on_conversation>count_on_chip>contacted"
# For each share of lost answers, the points of the send protocol at which a worker exits. The long form also tries
# every other point that a run passes.
STEPS = {0.0: ("before the call", "after the call", f"committed settle>{FOLLOWS}"), 1.0: ("committed doubt",)}
# Parts of a send: a point whose label has one of these words belongs to a send.
WORDS = ("call", "facts", "intend", "take", "left", "doubt", "settle", "absent", "looked", "confirm", "went", "release")


async def test_sender_that_exits_at_any_point_neither_repeats_nor_loses_a_message(
    places: Mapping[str, Path],
) -> None:
    await together(*(_sweep(url, folder) for url, folder in places.items()))


async def _sweep(url: str, folder: Path) -> None:
    figures = Figures(
        "T02, T39",
        kind(url),
        "workers exit (`os._exit`) at different steps of a send, and answers of the gateway are lost",
    )
    async with sending_workers(folder, url, doctors=600 if LONG else 40, rate=RATE, lease=15) as office:
        reached = [await _die_at(office, point, lost) for lost, points in STEPS.items() for point in points]
        await office.behave(lost_answers=0.5 if LONG else 0)
        more = await _try_other_points(office, {*reached}) if LONG else ()
        await office.begin_until_up(2)
        given_up = await revive(office)
        left = await office.judge()
        assert set((await office.ends()).values()) <= {End.DELIVERED, End.PARKED}
        gone = [*reached, *(point for point in more if point is not None)]
        note = f"workers exited at {len(gone)} of {len(reached) + len(more)} steps; messages abandoned, then retried: {given_up}"
        figures.record_items(await tally(office, left), note)


async def _die_at(office: SendingWorkers, point: str, lost: float) -> str:
    """Run one worker, which exits at the given labelled point in the code. Fail if the worker does not reach the point:
    no other worker is running that could take its items.
    """
    await office.behave(lost_answers=lost)
    await office.put(2)
    doomed = office.begin(send_plant.run, dies_at=f"{point}#1")
    await asyncio.to_thread(doomed.join, TIMEOUT)
    assert doomed.exitcode == GONE, f"{point}: {doomed.exitcode}\n{office.log()}"
    office.living.remove(doomed)
    return point


async def _try_other_points(office: SendingWorkers, known: Collection[str]) -> Sequence[str | None]:
    """Run workers that exit at the labelled points in the code, one worker for each point that is not in ``known`` and
    several at a time. The result for a point is None if no worker reached the point.
    """
    room = asyncio.Semaphore(CONCURRENCY)
    points = sorted({*await _record_points(office)} - {*known})
    return await asyncio.gather(*(_try_to_die_at(office, point, room) for point in points))


async def _record_points(office: SendingWorkers) -> Collection[str]:
    """Record the labelled points in the code that a run without a crash passes."""
    await office.put(40)
    recording = office.begin(send_plant.run, dies_at="")
    await office.until_over()
    await office.stop(recording)
    seen = Counter(words[1] for words in office.notes() if words[0] == "point")
    return [label for label in seen if any(word in label for word in WORDS)]


async def _try_to_die_at(office: SendingWorkers, point: str, room: asyncio.Semaphore) -> str | None:
    async with room:
        await office.put(3)
        doomed = office.begin(send_plant.run, dies_at=f"{point}#1")
        await asyncio.to_thread(doomed.join, 20)
        if doomed.exitcode is None:
            office.kill(doomed)
            return None
        office.living.remove(doomed)
        assert doomed.exitcode == GONE, f"{point}: {doomed.exitcode}\n{office.log()}"
        return point
