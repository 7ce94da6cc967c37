"""``batuta workers`` as operators use it."""

import asyncio
import importlib
import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from batuta import Batuta
from batuta.dispatch.scheduler import Scheduler
from batuta.kernel.identity import identity
from batuta.processes.restarts import NewRestart, RestartReason
from tests.command import Command

PROGRAM = """
from batuta import Batuta

work = Batuta("sqlite:///work.db")
"""
ENGLISH = ("--app", "program:work", "--lang", "en")
LOOP = {"alive": False, "last_ping_ago": 70.0, "last_progress_ago": 75.5, "failures": 2, "restarts": 1}


@pytest.fixture(autouse=True)
def program(folder: Path) -> None:
    (folder / "program.py").write_text(PROGRAM)


def store_processes() -> None:
    """Store a live process with a stuck loop, a dead process, a process that ended normally, and the record of a
    restart.
    """
    work = importlib.import_module("program").work

    async def write() -> None:
        async with work:
            now = work.clock.now()
            await work.beats.beat("w:2", "worker", {"outbound": LOOP}, now=now - timedelta(minutes=5), pid=8)
            await work.beats.beat(
                "w:1", "worker", {"outbound": LOOP}, now=now, status="degraded", rss_bytes=2**26, pid=7
            )
            await work.beats.beat("a:1", "api", {"alerts": LOOP}, now=now, status="offline", pid=9)
            restart = NewRestart(
                worker_name="worker", reason=RestartReason.STUCK, detail="no progress for 1 min", host="here", pid=7,
                worker_id="w:1", loop="outbound", stack="  File \"outbound.py\", line 7, in send\n",
            )  # fmt: skip
            await work.observability.restarts.add(restart)

    asyncio.run(write())


def test_process_that_was_killed_elsewhere_is_dead_at_once(batuta: Command) -> None:
    work = importlib.import_module("program").work
    with subprocess.Popen([sys.executable, "-c", "pass"]) as ended:
        ended.wait()
    here = identity()
    killed = f"{here.host}:{ended.pid}:1:{here.place}:x"

    async def write() -> None:
        async with work:
            await work.beats.beat(killed, "worker", {"outbound": LOOP}, now=work.clock.now(), pid=ended.pid)

    asyncio.run(write())
    (shown,) = json.loads(batuta(*ENGLISH, "workers", "--json")[1])["workers"]
    assert shown["status"] == "dead"


def test_workers_lists_processes_loops_and_restarts_and_marks_dead_ones(batuta: Command) -> None:
    store_processes()
    _, output, _ = batuta(*ENGLISH, "workers")
    assert "degraded" in output
    assert "dead" in batuta(*ENGLISH, "workers", "--all")[1]
    assert "no progress for 1 min" in output
    assert "api" not in output  # the api ended normally, so it is not listed
    assert "outbound.py" not in output
    assert "outbound.py" in batuta(*ENGLISH, "workers", "--stacks")[1]


def test_killed_process_is_dead_at_once_and_hidden_when_it_is_replaced(batuta: Command) -> None:
    work = importlib.import_module("program").work
    loops = {"outbound": {**LOOP, "alive": True}}

    async def dies(replaced: bool) -> None:
        async with work:
            now = work.clock.now()
            await work.beats.beat("w:1", "worker", loops, now=now - timedelta(seconds=2), pid=7)
            crashed = NewRestart(
                worker_name="worker",
                reason=RestartReason.CRASHED,
                detail="killed by SIGKILL",
                host="here",
                pid=7,
                worker_id="w:1",
            )
            await work.observability.restarts.add(crashed)
            if replaced:
                await work.beats.beat("w:2", "worker", loops, now=now, pid=8)

    asyncio.run(dies(replaced=False))
    (dead,) = json.loads(batuta(*ENGLISH, "workers", "--json")[1])["workers"]
    assert (dead["status"], dead["loops"]["outbound"]["alive"]) == ("dead", False)
    asyncio.run(dies(replaced=True))
    pids = [
        [each["pid"] for each in json.loads(batuta(*ENGLISH, "workers", "--json", *words)[1])["workers"]]
        for words in ([], ["--all"])
    ]
    assert pids == [[8], [7, 8]]


def test_workers_prints_one_json_document(batuta: Command) -> None:
    store_processes()
    _, output, _ = batuta("--app", "program:work", "workers", "--all", "--json")
    document = json.loads(output)
    assert {each["worker_id"]: each["status"] for each in document["workers"]} == {
        "w:1": "degraded",
        "w:2": "dead",
        "a:1": "offline",
    }
    first = next(each for each in document["workers"] if each["worker_id"] == "w:1")
    assert (first["rss_mb"], first["loops"]["outbound"]["failures"], first["loops"]["outbound"]["alive"]) == (
        64,
        2,
        False,
    )
    (restart,) = document["restarts"]
    assert (restart["loop"], restart["reason"]) == ("outbound", "stuck")
    assert "in send" in restart["stack"]


def test_workers_without_processes_names_the_command_to_start(batuta: Command) -> None:
    code, output, _ = batuta(*ENGLISH, "workers")
    assert code == 0
    assert "`batuta up` starts all processes" in output
    assert "no restarts" in output


def test_timetables_of_two_versions_are_listed_with_the_active_one(batuta: Command) -> None:
    work = importlib.import_module("program").work

    async def deployed() -> None:
        async with work:
            old, new = (
                Scheduler(work.registry, work.executions, work.clock, work.ids, work.events, release=name)
                for name in ("first", "second")
            )
            for each in (old, new, old):
                await each.dispatcher.tick()

    asyncio.run(deployed())
    timetables = json.loads(batuta(*ENGLISH, "workers", "--json")[1])["timetables"]
    assert [(each["release"], each["state"]) for each in timetables] == [("second", "active"), ("first", "standing_by")]
    assert "standing by" in batuta(*ENGLISH, "workers")[1]


def test_jobs_warns_that_its_version_does_not_fire(batuta: Command) -> None:
    assert json.loads(batuta(*ENGLISH, "jobs", "--json")[1])["fires"] is True
    work = importlib.import_module("program").work

    async def deployed() -> None:
        other = Batuta("sqlite:///work.db")
        other.job("0 4 * * *", name="another")(lambda: 1)
        async with work, other:
            for each in (work, other):
                await each.scheduler().dispatcher.tick()

    asyncio.run(deployed())
    assert json.loads(batuta(*ENGLISH, "jobs", "--json")[1])["fires"] is False
    out = batuta(*ENGLISH, "jobs")[1]
    assert "are not firing: the schedules of another release" in out
    assert "`batuta workers`" in out


def test_jobs_of_the_active_version_mention_no_version(batuta: Command) -> None:
    work = importlib.import_module("program").work

    async def deployed() -> None:
        async with work:
            release = Scheduler(work.registry, work.executions, work.clock, work.ids, work.events, release="first")
            await release.dispatcher.tick()

    asyncio.run(deployed())
    assert "version" not in batuta(*ENGLISH, "jobs")[1]


def test_workers_after_an_orderly_stop_reports_that_nothing_runs(batuta: Command) -> None:
    batuta(*ENGLISH, "migrate")
    out = batuta(*ENGLISH, "workers")[1]
    assert "no process is running: `batuta up` starts all processes" in out
    assert "`batuta workers --all`" in out


def test_flags_of_a_worker_are_checked_and_shown(batuta: Command, folder: Path) -> None:
    (folder / "program.py").write_text(PROGRAM + "\n@work.task(queue='mail')\ndef send() -> None: ...\n")
    code, _, said = batuta(*ENGLISH, "worker", "--queues", "mial", "--concurrency", "3")
    assert code == 2
    assert "there is no queue 'mial': did you mean mail?" in said
    work: Batuta = importlib.import_module("program").work
    assert (work.only, work.worker_policy.limit) == (("mial",), 3)
    batuta(*ENGLISH, "worker", "--queues", "mial,heavy", "--queues", "other")
    assert importlib.import_module("program").work.only == ("mial", "heavy", "other")

    async def write() -> None:
        async with work:
            await work.beats.beat("w:1", "worker", {"worker:mail": {**LOOP, "concurrency": 3}}, pid=7)

    asyncio.run(write())
    _, out, _ = batuta(*ENGLISH, "workers", "--json")
    assert json.loads(out)["workers"][0]["queues"] == {"mail": 3}


def test_a_process_is_named_by_host_and_pid(batuta: Command) -> None:
    work = importlib.import_module("program").work

    async def start() -> None:
        async with work:
            await work.beats.beat("w:1", "worker", {"outbound": LOOP}, now=work.clock.now(), host="web1", pid=7)

    asyncio.run(start())
    assert "web1:7 was asked to restart" in batuta(*ENGLISH, "workers", "restart", "web1:7")[1]
    code, _, refused = batuta(*ENGLISH, "workers", "drain", "web1:9")
    assert code != 0
    assert "web1:7" in refused
