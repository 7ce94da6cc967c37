"""`batuta up` while one of its processes, or the parent itself, is stopped or killed."""

import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from batuta import Batuta
from batuta.cli.roles import longest_stop
from batuta.config import EngineSettings, load_settings
from batuta.processes.tree import KILLING
from batuta.supervise.shutdown import EXIT_MARGIN
from tests.faults.figures import LONG, Figures
from tests.faults.processes import Tree, is_gone, tree, until
from tests.faults.waiting import TIMEOUT, slowness
from tests.servers import free_port

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

PLANT = "tests.faults.parent_plant:work"
ROLES = ("api", "scheduler", "worker")
REPLACED_WITHIN = 40.0 if LONG else TIMEOUT
LONGEST_STOP = longest_stop(load_settings(EngineSettings, {}))
MICROSECOND = timedelta(microseconds=1)


@contextmanager
def plant(folder: Path, *words: str, **env: str) -> Iterator[Tree]:
    # The long form uses the default limit of an installation. The short form uses a limit that is short enough for a
    # test to wait for it.
    limit = 20.0 if LONG else 2 * slowness()
    with tree(folder, "up", *words, app=PLANT, **{"BATUTA_WATCHDOG_SECONDS": f"{limit:g}", **env}) as running:
        yield running


def read(folder: Path, statement: str) -> list[tuple[Any, ...]]:
    try:
        with closing(sqlite3.connect(f"file:{folder}/julia.db?mode=ro", uri=True)) as database:
            return database.execute(statement).fetchall()
    except sqlite3.OperationalError:  # the file or table does not exist yet
        return []


def is_ready(fact: dict[str, Any]) -> bool:
    return bool(re.fullmatch(r"child \S+ ready", fact["event"]))


def ready(running: Tree) -> dict[str, int]:
    """Wait until every role is ready, and return each role's process id."""

    def all_are() -> bool:
        ready = {fact["role"].partition("-")[0] for fact in running.facts() if is_ready(fact)}
        return ready >= set(ROLES) and running.is_up()

    until("every role is ready", all_are)
    # A child that answered too late may be restarting, and is missing for a moment.
    until("every role has a process", lambda: running.children().keys() >= set(ROLES))
    return running.children()


def ready_again(running: Tree, role: str, before: int) -> bool:
    ready = [fact for fact in running.facts() if is_ready(fact) and fact["role"] == role]
    return any(fact["pid"] != before for fact in ready)


def replaced(running: Tree, role: str, before: int, began: float) -> float:
    until(f"another {role} is ready", lambda: ready_again(running, role, before))
    return time.monotonic() - began


def test_stopped_api_scheduler_and_worker_are_found_killed_and_replaced(tmp_path: Path) -> None:
    figures = Figures("T28", "SQLite", "API, scheduler and worker are stopped at the same time (SIGSTOP)")
    with plant(tmp_path) as running:
        before = ready(running)
        until("each has a heartbeat", lambda: _with_heartbeat(tmp_path) >= {before[role] for role in ROLES})
        for role in ROLES:
            os.kill(before[role], signal.SIGSTOP)
        began = time.monotonic()
        took = {role: replaced(running, role, before[role], began) for role in ROLES}
        until("the api answers", running.is_up)
        assert all(is_gone(before[role]) for role in ROLES)
        rows = until("it is written down", lambda: _stalls(tmp_path, set(before.values())))
        assert {role for role, *_ in rows} == set(ROLES)
        assert all("stopped" in detail for _, detail, _ in rows)
        facts = [fact for fact in running.facts() if fact["event"].startswith("[WATCHDOG]")]
        assert {fact.get("role") for fact in facts} >= set(ROLES)  # a slow process also reports itself, without a role
        assert running.end() == 0
    figures.record_bare(3, "; ".join(f"{role} was replaced after {seconds:.1f} s" for role, seconds in took.items()))
    assert not LONG or max(took.values()) <= REPLACED_WITHIN


def _with_heartbeat(folder: Path) -> set[int]:
    return {pid for (pid,) in read(folder, "SELECT pid FROM worker_heartbeats")}


def _stalls(folder: Path, pids: set[int]) -> list[tuple[Any, ...]]:
    rows = read(folder, "SELECT worker_name, detail, pid FROM worker_restarts WHERE reason = 'stalled'")
    found = [row for row in rows if row[2] in pids]
    said = {pid for (pid,) in read(folder, "SELECT pid FROM worker_heartbeats WHERE status = 'stalled'")}
    return found if len(found) >= len(ROLES) and said >= {pid for *_, pid in found} else []


async def test_work_continues_while_one_of_two_workers_is_stopped(tmp_path: Path) -> None:
    many = 2000 if LONG else 120
    figures = Figures("T28", "SQLite", f"one of two workers that run {many} tasks is stopped (SIGSTOP)")
    with plant(tmp_path, "--workers", "2") as running:
        ready(running)
        until("two workers", lambda: len(running.families().get("worker", [])) == 2)
        await _enqueue(tmp_path, many)
        until("they work", lambda: (tmp_path / "marks").exists())
        os.kill(running.families()["worker"][0], signal.SIGSTOP)
        until("all is done", lambda: _open_tasks(tmp_path) == 0)
        marks = (tmp_path / "marks").read_text().split()
        lost = set(map(str, range(many))) - set(marks)
        assert running.end() == 0
    figures.record_bare(many, f"repeated tasks: {len(marks) - len(set(marks))}", wrong=len(lost))
    assert lost == set()


@pytest.mark.parametrize(("test", "ill"), [("T24", "sleeps"), *([("T25", "matches")] if LONG else [])])
async def test_task_that_blocks_its_worker_is_found_and_other_tasks_run_again(
    tmp_path: Path, test: str, ill: str
) -> None:
    limit, many = (15.0, 200) if LONG else (3.0, 20)
    what = {"sleeps": "`time.sleep(600)`", "matches": "an endless regular expression"}[ill]
    figures = Figures(
        test, "SQLite", f"under `batuta up`, a task blocks its process with {what}; the limit is {limit:g} s"
    )
    with plant(tmp_path, BATUTA_BLOCKED_SECONDS=f"{limit:g}", BATUTA_WATCHDOG_SECONDS="20") as running:
        before = ready(running)
        await _enqueue(tmp_path, many // 2, ill)
        until("it strikes", (tmp_path / "struck").exists)
        struck, served = time.monotonic(), many // 2
        await _enqueue(tmp_path, many, first=served)
        until("it is ended", lambda: is_gone(before["worker"]))
        found = time.monotonic() - struck
        until("others are served", lambda: len(_marks(tmp_path)) > served)
        again = time.monotonic() - struck
        until("all is done", lambda: _open_tasks(tmp_path) == 0)
        lost = set(map(str, range(many))) - _marks(tmp_path)
        (stack,) = until("it is written down", lambda: read(tmp_path, BLOCKED))
        assert f"in {ill}" in stack[0]
        assert running.children()["api"] == before["api"]
        assert running.end() == 0
    figures.record_bare(
        many + 1, f"the process ended after {found:.1f} s; the next process worked after {again:.1f} s", wrong=len(lost)
    )
    assert lost == set()
    assert not LONG or (found <= 20 and again <= 30)


async def test_killed_single_process_loses_no_task_and_the_next_one_recovers_its_work(tmp_path: Path) -> None:
    many = 2000 if LONG else 40
    figures = Figures("T09", "SQLite", f"`batuta up --one-process` is killed and restarted while {many} tasks wait")
    with plant(tmp_path, "--one-process") as running:
        until("it serves", running.is_up)
        assert running.families() == {}
        await _enqueue(tmp_path, many)
        until("it works", lambda: (tmp_path / "marks").exists())
        running.process.kill()
        running.process.wait()
    with plant(tmp_path, "--one-process", PORT=str(running.port)) as second:
        until("all is done", lambda: _open_tasks(tmp_path) == 0)
        names = "SELECT worker_name FROM worker_heartbeats WHERE pid = "
        until("each role beats", lambda: set(read(tmp_path, f"{names}{second.process.pid}")) == {(r,) for r in ROLES})
        assert second.end() == 0
    lost = set(map(str, range(many))) - _marks(tmp_path)
    figures.record_bare(many, wrong=len(lost))
    assert lost == set()


BLOCKED = "SELECT stack FROM worker_restarts WHERE reason = 'blocked' AND loop IS NULL"


def _marks(folder: Path) -> set[str]:
    return set((folder / "marks").read_text().split()) if (folder / "marks").exists() else set()


async def _enqueue(folder: Path, until: int, *others: str, first: int = 0) -> None:
    work = Batuta(f"sqlite:///{folder}/julia.db", migrate=False)

    @work.task()
    async def mark(number: int) -> None: ...

    async def ill() -> None: ...

    for other in others:
        work.task(name=other)(ill)
    async with work:
        await work.enqueue_many(mark, [(number,) for number in range(first, until)])
        for other in others:
            await work.enqueue(other)


def _open_tasks(folder: Path) -> int | None:
    counted = read(folder, "SELECT count(*) FROM tasks WHERE finished_at IS NULL")
    return counted[0][0] if counted else None


def test_no_process_outlives_a_killed_parent_and_the_next_one_serves_at_once(tmp_path: Path) -> None:
    figures = Figures("T09", "SQLite", "the parent of `batuta up` is killed, and `batuta up` is started again")
    with plant(tmp_path) as running:
        children = ready(running)
        until("the worker has a child of its own", (tmp_path / "grandchild").exists)
        grandchild = int(until("it is named", (tmp_path / "grandchild").read_text))
        os.kill(children["scheduler"], signal.SIGSTOP)  # a stopped process must end too
        began = time.monotonic()
        running.process.kill()
        running.process.wait()
        all_of_them = [*children.values(), grandchild]
        until("no process is left", lambda: all(is_gone(pid) for pid in all_of_them))
        gone = time.monotonic() - began
        with plant(tmp_path, PORT=str(running.port)) as second:
            until("it serves", second.is_up)
            serves = time.monotonic() - began
            ready(second)
            assert second.end() == 0
    figures.record_bare(
        len(all_of_them), f"all processes ended after {gone:.2f} s; a new parent was ready after {serves:.1f} s"
    )
    assert not LONG or (gone <= 2 and serves <= 30)


@pytest.mark.skipif(not LONG, reason="the short form is the one above")
def test_kernel_ends_the_children_when_the_orphan_reaper_is_killed_too(tmp_path: Path) -> None:
    with plant(tmp_path) as running:
        children = ready(running)
        for pid in Path(f"/proc/{running.process.pid}/task/{running.process.pid}/children").read_text().split():
            if "batuta-orphan-reaper" in Path(f"/proc/{pid}/cmdline").read_text():
                os.kill(int(pid), signal.SIGKILL)
        running.process.kill()
        running.process.wait()
        until("no process is left", lambda: all(is_gone(pid) for pid in children.values()))


@pytest.mark.skipif(not LONG, reason="its waits are those of an installation")
def test_crash_loop_raises_an_alert_and_recovers_by_itself(tmp_path: Path) -> None:
    figures = Figures("T28", "SQLite", "the process of one role ends each time it is started")
    (tmp_path / "broken").touch()
    (tmp_path / "words").mkdir()
    for language in ("en", "pt_BR"):
        (tmp_path / "words" / f"{language}.toml").write_text('[cli.flaky]\nhelp = "ends"\n')
    with plant(tmp_path) as running:
        before = ready(running)
        began = time.monotonic()
        until("a crash loop", lambda: any("crash loop" in fact["event"] for fact in running.facts()))
        looping = time.monotonic() - began
        until("an alert", lambda: _alerts(tmp_path))
        alert = time.monotonic() - began
        asked = _batuta(tmp_path, running, "health", "--json")
        assert "workers.crashing.flaky" in asked.stdout
        assert asked.returncode == 1
        after = running.children()
        assert {role: after[role] for role in ROLES} == {role: before[role] for role in ROLES}
        (tmp_path / "broken").unlink()
        until("it lives", lambda: ready_again(running, "flaky", 0))
        assert running.end() == 0
    figures.record_bare(
        5,
        f"the crash loop was found after {looping:.0f} s and reported after {alert:.0f} s; the other processes continued",
    )


def _alerts(folder: Path) -> list[tuple[Any, ...]]:
    return read(folder, "SELECT tipo FROM alertas_enviados WHERE tipo = 'workers.crashing.flaky'")


def _batuta(folder: Path, running: Tree, *words: str) -> "subprocess.CompletedProcess[str]":
    env = {**running.environment, "PORT": str(free_port())}
    command = [sys.executable, "-m", "batuta", "--app", PLANT, *words]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=60)


class Systemd:
    """The messages that a service manager such as systemd receives on its notify socket."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.address = str(folder / "notify")
        self._inbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._inbox.bind(self.address)
        self._inbox.settimeout(TIMEOUT)
        self.heard: list[str] = []

    def hears(self, words: str) -> None:
        """Wait until the service manager has received a message that begins with ``words``."""
        ends = time.monotonic() + 2 * TIMEOUT
        while time.monotonic() < ends:
            said = self._inbox.recv(4096).decode().split("\n")
            self.heard += said
            if any(each.startswith(words) for each in said):
                return
        raise AssertionError(f"{words} was not heard: {self.heard[-10:]}")

    def environment(self, limit: float) -> dict[str, str]:
        return {"NOTIFY_SOCKET": self.address, "WATCHDOG_USEC": str(int(limit * 1_000_000))}

    def close(self) -> None:
        self._inbox.close()


def test_systemd_receives_ready_watchdog_and_stopping_of_the_whole_tree(tmp_path: Path) -> None:
    with closing(Systemd(tmp_path)) as systemd, plant(tmp_path, **systemd.environment(2)) as running:
        systemd.hears("READY=1")
        until("the log says so too", lambda: {fact["role"] for fact in running.facts() if is_ready(fact)} == set(ROLES))
        assert "STATUS=running: api, scheduler, worker" in systemd.heard
        systemd.hears("WATCHDOG=1")
        systemd.hears("WATCHDOG=1")
        running.process.send_signal(signal.SIGTERM)
        systemd.hears("STOPPING=1")
        assert f"EXTEND_TIMEOUT_USEC={(LONGEST_STOP + KILLING + EXIT_MARGIN) // MICROSECOND}" in systemd.heard
        assert running.process.wait(TIMEOUT) == 0


def test_systemd_receives_the_same_of_a_single_role(tmp_path: Path) -> None:
    """A role that runs without a parent process sends the messages about readiness, watchdog and stop directly to its
    service manager. The test checks each of the three roles.
    """
    with ExitStack() as stack:
        managers = {role: stack.enter_context(closing(Systemd(tmp_path / role))) for role in ROLES}
        started = {
            role: stack.enter_context(tree(tmp_path, role, app=PLANT, **manager.environment(2)))
            for role, manager in managers.items()
        }
        for role, manager in managers.items():
            manager.hears("READY=1")
            manager.hears("WATCHDOG=1")
            manager.hears("WATCHDOG=1")
            started[role].process.send_signal(signal.SIGTERM)
            manager.hears("STOPPING=1")
            assert f"EXTEND_TIMEOUT_USEC={LONGEST_STOP // MICROSECOND}" in manager.heard
            assert started[role].process.wait(TIMEOUT) == 0
