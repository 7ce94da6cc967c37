"""`batuta up`, and what happens when one of its processes is killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.processes import ROOT, is_gone, tree, until
from tests.faults.waiting import TIMEOUT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

PLANT = "tests.faults.parent_plant:work"


def test_up_serves_and_a_stop_drains_every_child_and_then_the_parent(tmp_path: Path) -> None:
    with tree(tmp_path, "up", "--workers", "2", LOG_FORMAT="json") as running:
        until("it answers", running.is_up)
        until("all have logged their start", lambda: running.log.read_text().count("process started") == 8)
        assert set(running.children()) == {"simulador", "simulador_telegram", "api", "scheduler", "worker", "telegram"}
        until("the outside answers", lambda: (running.get("/health/ready") or {})["checks"]["evolution"] == "ok")
        children = [pid for pids in running.families().values() for pid in pids]
        assert len(children) == 7
        # The parent has left the application behind.
        assert "batuta.cli.parent" in Path(f"/proc/{running.process.pid}/cmdline").read_text()
        assert running.end(signal.SIGTERM) == 0
        assert all(is_gone(pid) for pid in children)
        stopped = [fact["role"] for fact in running.facts() if fact["event"] == "process ended"]
        assert sorted(stopped[:-1]) == [
            "api",
            "scheduler",
            "simulador",
            "simulador_telegram",
            "telegram",
            "worker",
            "worker",
        ]
        assert stopped[-1] == "up"
        started = [fact["event"] for fact in running.facts() if fact["event"].startswith("process started")]
        assert all("Hora atual:" in each for each in started)  # Julia's phrase, also in the parent
        # Each line names the child that wrote it.
        assert {"up", "scheduler", "worker-1", "worker-2"} < {fact["service"] for fact in running.facts()}


def test_ctrl_c_ends_in_order_and_each_pretty_line_begins_with_its_process(tmp_path: Path) -> None:
    with tree(tmp_path, "up", "--workers", "2", app=PLANT, LOG_FORMAT="pretty") as running:
        until("all have logged their start", lambda: running.log.read_text().count("process started") == 5)
        until("the address is announced", lambda: "Ctrl-C." in running.log.read_text())
        started = running.log.read_text().splitlines()
        page, command, stop = (line for line in started if line and "|" not in line)
        assert ("/painel" in page, "health" in command, "Ctrl-C" in stop) == (True, True, True)
        assert sum("ready" in line for line in started[: started.index(page)]) == 4
        assert running.end(signal.SIGINT) == 0
        lines = running.log.read_text().splitlines()
        speakers = {line.partition("|")[0].strip() for line in lines if "|" in line}
        assert speakers == {"up", "api", "scheduler", "worker-1", "worker-2"}


def test_killed_child_comes_back_and_its_siblings_are_unaffected(tmp_path: Path) -> None:
    with tree(tmp_path, "up", app=PLANT) as running:
        until("it answers", running.is_up)
        before = until("all are there", lambda: len(running.children()) == 3 and running.children())
        os.kill(before["api"], signal.SIGKILL)
        until("it is gone", lambda: not running.is_up())
        until("it answers again", running.is_up)
        after = running.children()
        assert after["api"] != before["api"]
        assert (after["worker"], after["scheduler"]) == (before["worker"], before["scheduler"])


def test_configuration_that_no_restart_can_fix_ends_the_whole_tree(tmp_path: Path) -> None:
    marked = {"APP_ENV": "production", "API_TOKEN": "t" * 32, "SECRET_KEY": "k" * 32}
    with tree(tmp_path, "migrate", app=PLANT, **marked, PLANT_PROJECT="mine") as migrating:
        assert migrating.process.wait(TIMEOUT) == 0
    with tree(tmp_path, "up", app=PLANT, **marked, PLANT_PROJECT="yours") as running:
        assert running.process.wait(TIMEOUT) == 2
        assert "este banco de dados é do projeto 'mine', e não de 'yours'" in running.log.read_text()


def test_outdated_schema_is_reported_in_production_and_migrated_in_development(tmp_path: Path) -> None:
    production = {"APP_ENV": "production", "API_TOKEN": "t" * 32, "SECRET_KEY": "k" * 32}
    with tree(tmp_path, "worker", app=PLANT, **production) as refused:
        assert refused.process.wait(TIMEOUT) == 2
        assert "execute `batuta migrate`" in refused.log.read_text()
        assert "Traceback" not in refused.log.read_text()
    with tree(tmp_path, "worker", app=PLANT) as running:
        until("it works", lambda: any("migration applied" in fact["event"] for fact in running.facts()))
        assert running.end() == 0


def test_second_signal_exits_at_once(tmp_path: Path) -> None:
    program = (
        "import asyncio\nfrom batuta.processes.exit import stop_on_signals\n"
        "async def main():\n"
        "    with stop_on_signals(asyncio.Event()):\n"
        "        print('ready', flush=True)\n"
        "        await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    clinging = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=environment)
    assert clinging.stdout is not None
    clinging.stdout.readline()
    clinging.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        clinging.wait(0.5)
    clinging.send_signal(signal.SIGTERM)
    assert clinging.wait(60) == 128 + signal.SIGTERM
    clinging.stdout.close()
