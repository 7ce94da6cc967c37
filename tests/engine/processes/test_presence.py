"""Presence files show which processes died while they held leases, so their work is recovered without polling the
database.
"""

import os
import subprocess
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from batuta.kernel.errors import StoreTimeout, StoreUnavailable
from batuta.kernel.identity import ProcessIdentity, ProcFiles, Verdict, identity, make_owner
from batuta.kernel.ids import Ids
from batuta.processes.presence import CRASH_FILE_RETENTION, Announcement, CrashWatch, LocalJudge, PresenceFolder
from batuta.testing import FakeClock

MINE = "alpha:10:100:9f86d081884c7d65:mine"
DEAD = "alpha:11:101:9f86d081884c7d65:dead"
ALIVE = "alpha:12:102:9f86d081884c7d65:alive"
FOREIGN = "beta:13:103:60303ae22b998861:foreign"
VERDICTS = {11: Verdict.DEAD, 12: Verdict.ALIVE, 13: Verdict.UNKNOWN}


def judge(process: ProcessIdentity) -> Verdict:
    return VERDICTS[process.pid]


@dataclass
class Host:
    folder: Path
    clock: FakeClock = field(default_factory=FakeClock)
    recovered: list[list[str]] = field(default_factory=list)
    # number of items that each recovery returns in turn; afterwards none
    batches: list[int] = field(default_factory=list)
    is_away: bool = False

    def __post_init__(self) -> None:
        self.presence = PresenceFolder(self.folder, judge)
        self.watch = CrashWatch(self.presence, [self._recover], self.clock)

    async def _recover(self, owners: Collection[str]) -> int:
        if self.is_away:
            raise StoreUnavailable(where="here", why="it is away")
        self.recovered.append(list(owners))
        return self.batches.pop(0) if self.batches else 0

    def announce(self, *owners: str) -> None:
        for owner in owners:
            PresenceFolder(self.folder).announce(owner)

    async def look(self, seconds: float, every: float = 0.5) -> None:
        for _ in range(round(seconds / every)):
            await self.clock.advance(every)
            await self.watch.tick()

    @property
    def files(self) -> set[str]:
        return {file.name for file in self.folder.iterdir()} if self.folder.exists() else set()


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path / "owners")


async def test_only_owners_proven_dead_are_recovered(host: Host) -> None:
    host.announce(DEAD, ALIVE, FOREIGN)
    await host.watch.tick()
    assert host.recovered == [[DEAD]]


async def test_crash_with_more_items_than_a_batch_is_recovered_in_batches(host: Host) -> None:
    host.announce(DEAD)
    host.batches = [100, 100, 7]
    await host.watch.tick()
    assert host.recovered == [[DEAD]] * 4


async def test_look_without_dead_owners_makes_no_query(host: Host) -> None:
    host.announce(ALIVE, FOREIGN)
    await host.look(60)
    assert host.recovered == []


async def test_crash_is_recovered_a_few_times_and_its_file_deleted_a_minute_later(host: Host) -> None:
    host.announce(DEAD)
    await host.look(CRASH_FILE_RETENTION - 1)
    assert host.recovered == [[DEAD]] * 5
    assert DEAD in host.files
    await host.look(2)
    assert DEAD not in host.files
    await host.look(10)
    assert host.recovered == [[DEAD]] * 5


async def test_crash_is_recovered_as_often_after_an_outage(host: Host) -> None:
    host.announce(DEAD)
    host.is_away = True
    for _ in range(300):
        await host.clock.advance(1)
        with pytest.raises(StoreUnavailable):
            await host.watch.tick()
    assert DEAD in host.files
    host.is_away = False
    await host.look(60)
    assert host.recovered == [[DEAD]] * 5
    assert DEAD not in host.files


async def test_table_that_cannot_be_recovered_delays_no_other(host: Host) -> None:
    async def time_out(owners: Collection[str]) -> int:
        raise StoreTimeout(where="here", why="its table is locked")

    watch = CrashWatch(host.presence, [time_out, host._recover], host.clock)
    host.announce(DEAD)
    with pytest.raises(StoreTimeout):
        await watch.tick()
    assert host.recovered == [[DEAD]]


async def test_clock_change_makes_no_owner_dead(host: Host) -> None:
    host.announce(ALIVE)
    for hours in (-24, 48):
        host.clock.step(timedelta(hours=hours))
        await host.look(2)
    assert host.recovered == []


async def test_process_announces_itself_until_it_has_drained(host: Host) -> None:
    announcement = Announcement(host.presence, MINE)
    await announcement.tick()
    assert host.files == {MINE}
    await host.watch.tick()  # a process does not judge itself
    (host.folder / MINE).unlink()  # like a service that cleans temporary folders
    await announcement.tick()
    assert host.files == {MINE}
    await announcement.drain(timedelta(seconds=1))
    assert not host.folder.exists()


async def test_missing_folder_disables_announcements_without_an_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    host = Host(file / "owners")
    assert not host.presence.is_usable()
    announcement = Announcement(host.presence, MINE)
    await announcement.tick()
    await host.watch.tick()
    await announcement.drain(timedelta(seconds=1))
    assert host.recovered == []


async def test_folder_of_another_user_is_not_used(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.announce(DEAD)
    user = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: user + 1)
    await host.watch.tick()
    assert (host.recovered, host.files) == ([], {DEAD})
    assert not host.presence.is_usable()


async def test_owner_that_cannot_be_proven_dead_leaves_no_file(tmp_path: Path) -> None:
    for owner in ("ann", "alpha:12:-:-:0190a1b2", "alpha:12:0190a1b2-0000-7000-8000-000000000000"):
        PresenceFolder(tmp_path / "owners").announce(owner)
    assert not (tmp_path / "owners").exists()


async def test_other_watch_judges_an_owner_of_this_process_alive(tmp_path: Path) -> None:
    owner = make_owner(Ids(FakeClock()))
    first = PresenceFolder(tmp_path / "owners")
    with first.present(owner):
        assert PresenceFolder(tmp_path / "owners").dead() == []
    assert not (tmp_path / "owners").exists()


def test_check_of_a_folder_leaves_no_folder_behind(tmp_path: Path) -> None:
    assert PresenceFolder(tmp_path / "owners").is_usable()
    assert not (tmp_path / "owners").exists()


def test_each_database_has_its_own_folder() -> None:
    assert PresenceFolder.for_database("/a.db").folder != PresenceFolder.for_database("/b.db").folder
    assert PresenceFolder.for_database("/a.db").folder == PresenceFolder.for_database("/a.db").folder


def test_judge_reads_no_file_for_a_living_process_and_notices_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["/bin/sleep", "60"]) as child:
        status = ProcFiles().status(child.pid)
        assert status is not None
        process, judge = replace(identity(), pid=child.pid, started=status.started), LocalJudge()
        assert judge(process) is Verdict.ALIVE
        with monkeypatch.context() as unreadable:
            unreadable.setattr(ProcFiles, "status", None)
            assert judge(process) is Verdict.ALIVE
        assert judge(replace(process, started="1")) is Verdict.DEAD  # another process had this pid
        child.kill()
        child.wait()
    assert judge(process) is Verdict.DEAD
