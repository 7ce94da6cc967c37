"""The identity of a lease owner, and when another process may declare the owner dead."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from batuta.kernel import identity as module
from batuta.kernel.identity import (
    OsProcess,
    ProcessIdentity,
    ProcFiles,
    Verdict,
    identity,
    make_owner,
    short,
    verdict,
)
from batuta.kernel.ids import Ids
from batuta.testing import FakeClock

OWNER = ProcessIdentity("alpha", 4711, "106554", "9f86d081884c7d65")
HERE = replace(OWNER, pid=4712, started="106600")
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


@dataclass
class Kernel:
    """A simulated process table. ``hidden`` contains processes that exist but are missing from /proc."""

    shown: dict[int, OsProcess | OSError] = field(default_factory=dict)
    hidden: set[int] = field(default_factory=set)

    def status(self, pid: int) -> OsProcess | None:
        match self.shown.get(pid):
            case OSError() as error:
                raise error
            case text:
                return text

    def has(self, pid: int) -> bool:
        return pid in self.shown or pid in self.hidden


def running(state: str = "S", threads: int = 1, started: str = OWNER.started) -> Kernel:
    return Kernel({OWNER.pid: OsProcess(OWNER.pid, state, threads, started)})


@pytest.mark.parametrize("state", list("RSDTtIKWP"))
def test_running_waiting_or_stopped_process_is_alive(state: str) -> None:
    assert verdict(OWNER, HERE, running(state)) is Verdict.ALIVE


def test_process_is_dead_when_no_process_has_its_pid() -> None:
    assert verdict(OWNER, HERE, Kernel()) is Verdict.DEAD


def test_process_is_dead_when_its_pid_has_another_start_time() -> None:
    assert verdict(OWNER, HERE, running(started="999999")) is Verdict.DEAD


@pytest.mark.parametrize("state", list("ZXx"))
def test_zombie_is_dead(state: str) -> None:
    assert verdict(OWNER, HERE, running(state)) is Verdict.DEAD


def test_process_whose_main_thread_alone_has_ended_is_not_dead() -> None:
    assert verdict(OWNER, HERE, running("Z", threads=3)) is Verdict.UNKNOWN


def test_process_hidden_by_proc_is_unknown() -> None:
    assert verdict(OWNER, HERE, Kernel(hidden={OWNER.pid})) is Verdict.UNKNOWN
    assert verdict(OWNER, HERE, Kernel({OWNER.pid: PermissionError(1, "hidepid=1")})) is Verdict.UNKNOWN


@pytest.mark.parametrize(
    "asking",
    [
        pytest.param(replace(HERE, host="beta"), id="another host"),
        pytest.param(replace(HERE, place="60303ae22b998861"), id="another boot or namespace"),
        pytest.param(replace(HERE, started="-", place="-"), id="a system without /proc"),
    ],
)
def test_process_without_a_view_of_the_owner_proves_nothing(asking: ProcessIdentity) -> None:
    assert verdict(OWNER, asking, Kernel()) is Verdict.UNKNOWN


def test_owner_without_its_own_start_time_is_never_proven_dead() -> None:
    blind = replace(OWNER, started="-", place="-")
    assert verdict(blind, blind, Kernel()) is Verdict.UNKNOWN
    assert verdict(replace(OWNER, started="-"), HERE, Kernel()) is Verdict.UNKNOWN


def test_identity_is_read_from_a_lease_owner_and_from_its_own_text() -> None:
    assert ProcessIdentity.parse(str(OWNER)) == OWNER
    assert ProcessIdentity.parse(f"{OWNER}:0190a1b2-0000-7000-8000-000000000000") == OWNER


@pytest.mark.parametrize(
    "text", ["", "ann", "alpha:12:0190a1b2-0000-7000-8000-000000000000", "a:b:c:d:e", "a:1:2:3:4:5"]
)
def test_owner_of_an_older_version_or_an_application_has_no_identity(text: str) -> None:
    assert ProcessIdentity.parse(text) is None


def test_start_time_is_read_behind_any_program_name() -> None:
    rest = "Z 1 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 2 0 106554 0 0"
    status = OsProcess.parse(f"7 (we (ird) S 1) {rest}")
    assert status == OsProcess(7, "Z", 2, "106554")


def test_two_owners_of_one_process_differ_and_show_host_and_pid() -> None:
    ids = Ids(FakeClock())
    first, second = make_owner(ids), make_owner(ids)
    assert first != second
    assert ProcessIdentity.parse(first) == ProcessIdentity.parse(second) == identity()
    assert short(first) == f"{identity().host}:{os.getpid()}"
    assert short("ann") == "ann"


@linux
def test_ended_child_is_dead_before_and_after_it_is_reaped() -> None:
    assert verdict(identity(), identity(), ProcFiles()) is Verdict.ALIVE
    child = subprocess.Popen(["sleep", "600"])
    status = ProcFiles().status(child.pid)
    assert status is not None
    known = replace(identity(), pid=child.pid, started=status.started)
    assert verdict(known, identity(), ProcFiles()) is Verdict.ALIVE
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # the child has ended and is a zombie until it is reaped
    assert verdict(known, identity(), ProcFiles()) is Verdict.DEAD
    child.wait()
    assert verdict(known, identity(), ProcFiles()) is Verdict.DEAD


@linux
def test_recycled_pid_is_not_the_earlier_process() -> None:
    before = replace(identity(), started="1")
    assert verdict(before, identity(), ProcFiles()) is Verdict.DEAD


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Create a /proc folder that contains only this process."""
    folder = tmp_path / "proc"
    (folder / "self" / "ns").mkdir(parents=True)
    (folder / "sys/kernel/random").mkdir(parents=True)
    (folder / "sys/kernel/random/boot_id").write_text("29062767-e024-4753-acff-64d3650ba7fc\n")
    (folder / "self" / "ns" / "pid").symlink_to("pid:[4026531836]")
    (folder / "self" / "ns" / "time").symlink_to("time:[4026531834]")
    (folder / "self" / "stat").write_text(
        f"{os.getpid()} (python) R 1 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 {threading.active_count()} 0 4242 0 0"
    )
    monkeypatch.setattr(module, "PROC", folder)
    module._identity.cache_clear()
    yield folder
    module._identity.cache_clear()


def read_again() -> ProcessIdentity:
    module._identity.cache_clear()
    return identity()


def test_other_boot_and_other_namespace_are_other_places(proc: Path) -> None:
    places = [read_again().place]
    for link, target in (("pid", "pid:[4026532177]"), ("time", "time:[4026532200]")):
        (proc / "self" / "ns" / link).unlink()
        (proc / "self" / "ns" / link).symlink_to(target)
        places.append(read_again().place)
    (proc / "sys/kernel/random/boot_id").write_text("00000000-e024-4753-acff-64d3650ba7fc\n")
    places.append(read_again().place)
    assert len(set(places)) == 4
    (proc / "self" / "ns" / "time").unlink()
    assert read_again().is_provable


@pytest.mark.parametrize("missing", ["sys/kernel/random/boot_id", "self/stat", "self/ns/pid"])
def test_process_without_kernel_data_proves_nothing(proc: Path, missing: str) -> None:
    (proc / missing).unlink()
    identity = read_again()
    assert (identity.pid, identity.is_provable) == (os.getpid(), False)


def test_proc_of_another_pid_namespace_proves_nothing(proc: Path) -> None:
    stat = proc / "self" / "stat"
    stat.write_text(stat.read_text().replace(str(os.getpid()), str(os.getpid() + 1), 1))
    assert not read_again().is_provable
