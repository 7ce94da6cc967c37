"""A backup is taken while messages are being sent, and restored later. Messages sent since the backup are not sent
again, and opt-outs since the backup still apply.
"""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from app.composition.julia import julia_of
from batuta.engine import backup
from tests.faults.conftest import together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.send_harness import SendingWorkers, sending_workers, tally
from tests.judges.messages import End, SendRules, judge_messages

RATE = 5.0


@pytest.mark.calm
@pytest.mark.parametrize("lost", [False, True] if LONG else [True], ids=lambda lost: "lost" if lost else "there")
async def test_backup_taken_under_load_and_restored_sends_nothing_again(places: dict[str, Path], lost: bool) -> None:
    await together(*(_restored(url, folder, lost=lost) for url, folder in places.items()))


async def _restored(url: str, folder: Path, *, lost: bool) -> None:
    """Restore a backup. With ``lost``, the current database is gone, so only the gateway and the journal contain what
    happened since the backup.
    """
    messages = 210 if LONG else 18
    old = "the replaced database is lost" if lost else "the replaced database can still be read"
    figures = Figures(
        "T40",
        kind(url),
        f"a backup is made while {messages} messages are sent, and is restored after all were sent; {old}",
    )
    slowly: dict[str, Any] = {"lease": 15, "at_a_time": 1, "at_rest": {"lost_answers": 0.2}}
    async with sending_workers(folder, url, doctors=messages + 2, rate=RATE, **slowly) as office:
        await office.put(messages * 2 // 3)
        workers = await office.begin_until_up(2)
        await office.until_left(1)
        await backup.take(office.work, folder / "backup", _ignore, by="ana")
        waiting = sum(end is End.OPEN for end in (await office.ends()).values())
        await office.put(messages // 3)
        await office.until_over()
        (doctor, phone) = office.doctors[messages]  # the doctor of the next message
        await _opt_out(office, phone)
        await office.stop(*workers)
        await office.work.close()
        if lost:
            await _lose(url, office)
        report = await backup.restore(office.work, folder / "backup", by="test", force=False, progress=_ignore)
        await office.work.open()
        assert report.restored.has_old is not lost
        (refused,) = await office.put(1)
        assert (await office.rows())[refused]["cliente_id"] == doctor
        await office.begin_until_up(2)
        await office.until_over()
        left = await office.deliveries()
        unknown_to_backup = {each.id: End.DELIVERED for each in left}
        ends = unknown_to_backup | await office.ends()
        rules = SendRules(read_at=office.clock.now(), within=timedelta(0))
        wrong = judge_messages(office.accepted, left, ends, rules)
        assert not wrong, wrong
        assert refused not in {each.id for each in left}
        assert ends[refused] in (End.FAILED, End.CANCELLED)
        assert {end for id, end in ends.items() if id != refused} == {End.DELIVERED}
        office.accepted = [each for each in office.accepted if each.id != refused]
        note = (
            f"the backup contained {waiting} unsent messages; no message was sent twice;"
            " an opt-out that arrived after the backup was obeyed"
        )
        figures.record_items(await tally(office, left), note)


def _ignore(what: str, count: int) -> None: ...


async def _opt_out(office: SendingWorkers, phone: str) -> None:
    work = office.work
    by_hand = julia_of(work).messages.optout
    await by_hand.parar(phone, by="test", reason="-")


async def _lose(url: str, office: SendingWorkers) -> None:
    if kind(url) == "SQLite":
        file = Path(url.removeprefix("sqlite:///"))
        for each in (file, Path(f"{file}-wal"), Path(f"{file}-shm")):
            each.unlink(missing_ok=True)
    else:
        await office.work.database.open()
        await office.work.database.script("DROP SCHEMA public CASCADE; CREATE SCHEMA public;")
        await office.work.database.close()
