"""The parent process of `batuta up`: it leaves the application behind, and keeps what it needs to know about it."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from batuta import Batuta
from batuta.cli.parent import OWN_EVENTS, LateRecords, Plan, hand_over, take_plan
from batuta.cli.up import needs_application
from batuta.config import EngineSettings, load_settings
from batuta.engine.extension import Extension
from batuta.kernel import events
from batuta.kernel.clock import SystemClock
from batuta.kernel.ids import Ids
from batuta.processes.restarts import NewRestart, RestartReason
from batuta.stores.sql.database import Database
from batuta.stores.sql.tables.processes import SqlBeats, SqlRestarts
from batuta.testing import FakeClock
from batuta.texts import Wording
from tests import ROOT

# Packages that would cost the parent megabytes of memory.
LARGE = (
    "app",
    "batuta.config",
    "batuta.engine",
    "batuta.health",
    "batuta.stores",
    "asyncpg",
    "pydantic",
    "sqlite3",
    "typer",
)
PLAN = Plan(
    app_name="plant:work",
    language="en",
    roles=["api", "worker"],
    workers=2,
    child_env={"MALLOC_ARENA_MAX": "1"},
    metrics_port=None,
    address="http://127.0.0.1:8000",
    page=["", "Plant is running.", ""],
    watchdog_seconds=20,
    stop_seconds=43,
    database_url="sqlite:///plant.db",
    database="plant.db",
    zone="America/Sao_Paulo",
    started="Plant started",
    field_names={"role": "papel"},
    misspelt=[["DATABSE_URL", "DATABASE_URL"]],
    log_level="INFO",
    log_format="json",
    no_color=None,
    force_color=None,
)


LIST_MODULES = """
import batuta.cli.parent, json, sys
print(json.dumps({name: module.__file__ for name, module in sys.modules.items() if hasattr(module, "__file__")}))
"""


def modules_of_the_parent() -> dict[str, str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    program = [sys.executable, "-c", LIST_MODULES]
    modules: dict[str, str] = json.loads(
        subprocess.run(program, env=environment, capture_output=True, check=True).stdout
    )
    return modules


def test_parent_imports_no_application_and_no_database() -> None:
    modules = modules_of_the_parent()
    assert "batuta.processes.tree" in modules
    assert [name for name in modules if any(name == each or name.startswith(f"{each}.") for each in LARGE)] == []


def test_each_event_that_the_parent_emits_is_known_to_be_its_own() -> None:
    files = [Path(file) for name, file in modules_of_the_parent().items() if name.startswith("batuta.")]
    emitted = {name for file in files for name in re.findall(r"emit\(\s*(?:events\.)?([A-Z]\w+)\(", file.read_text())}
    # the first has its phrase in the plan; the others belong to a guarded process
    assert emitted - {kind.__name__ for kind in OWN_EVENTS} == {
        "ProcessStarted",
        "EventLoopBlocked",
        "EventLoopResponds",
    }


def test_plan_reads_back_as_written() -> None:
    passed = os.memfd_create("plan")
    os.write(passed, json.dumps(asdict(PLAN)).encode())
    os.lseek(passed, 0, os.SEEK_SET)
    assert take_plan(passed) == PLAN


@pytest.mark.parametrize("refused", ["memfd_create", "execv"])
def test_process_that_cannot_be_replaced_continues_and_handles_signals(
    monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    def refuse(*args: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, refused, refuse)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    opened = len([*Path("/proc/self/fd").iterdir()])
    hand_over(PLAN)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
    assert len([*Path("/proc/self/fd").iterdir()]) == opened


def test_each_child_gets_its_name_its_role_and_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANT", "green")
    api, first, second = PLAN.children
    assert (api.name, first.name, second.name) == ("api", "worker-1", "worker-2")
    argv = ["--app", "plant:work", "--lang", "en", "worker", "--child-of", str(os.getpid()), "--named", "worker-2"]
    assert [*second.argv] == [sys.executable, "-m", "batuta", *argv]
    assert second.env.items() >= {"PLANT": "green", "MALLOC_ARENA_MAX": "1", "LOG_FORMAT": "json"}.items()


def on_file(folder: Path, clock: FakeClock | None = None, wording: Wording | None = None, **env: str) -> Batuta:
    settings = load_settings(EngineSettings, env)
    extension = Extension(wording=wording or Wording())
    return Batuta(f"sqlite:///{folder}/work.db", settings=settings, clock=clock, extension=extension)


def test_parent_leaves_an_application_behind_that_it_does_not_use(tmp_path: Path) -> None:
    wording = Wording(phrases={events.ProcessStarted: lambda event: "!", events.ExecutionStarted: lambda event: "?"})
    work = on_file(tmp_path, wording=wording)

    @work.task()
    async def water() -> None: ...

    assert not needs_application(work)


@pytest.mark.parametrize(
    "build",
    [
        lambda folder: on_file(folder, BATUTA_METRICS_PORT="9100"),
        lambda folder: on_file(folder, clock=FakeClock()),
        lambda folder: on_file(folder, wording=Wording(phrases={events.ChildEnded: lambda event: "!"})),
        lambda folder: observed(on_file(folder)),
    ],
)
def test_parent_keeps_an_application_that_it_uses(tmp_path: Path, build: Callable[[Path], Batuta]) -> None:
    assert needs_application(build(tmp_path))


def observed(work: Batuta) -> Batuta:
    work.events.subscribe(lambda event: None)
    return work


async def test_restarts_and_stalls_are_written_to_the_database_of_the_application(
    database_url: str, database: Database, ids: Ids
) -> None:
    beats, restarts = SqlBeats(database, "1"), SqlRestarts(database, ids)
    await beats.beat("w-1", "worker", {}, host="here", pid=7)
    records = LateRecords(database_url, SystemClock())
    await records.open()
    assert await records.record_stall(host="here", pid=7)
    await records.open()  # again, as after a restore
    await records.add(
        NewRestart(worker_name="worker", reason=RestartReason.STALLED, detail="killed by SIGKILL", host="here", pid=7)
    )
    await records.close()
    (found,) = await restarts.since(datetime.now(UTC) - timedelta(hours=1))
    assert (found.pid, found.reason, found.worker_id) == (7, RestartReason.STALLED, "w-1")


async def test_records_that_were_never_written_open_no_database(tmp_path: Path) -> None:
    await LateRecords(f"sqlite:///{tmp_path}/none.db", SystemClock()).close()
    assert [*tmp_path.iterdir()] == []
