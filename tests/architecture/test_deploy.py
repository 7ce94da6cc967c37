"""The unit file for systemd says what the processes keep to."""

import configparser
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from batuta.cli.up import MARGIN
from batuta.config import EngineSettings, load
from batuta.supervise.comeback import EXIT_CONFIG

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "deploy" / "batuta.service"
ROLES = 4  # api, scheduler, worker, and one that is still to come


@pytest.fixture
def service() -> configparser.SectionProxy:
    unit = configparser.ConfigParser(interpolation=None, strict=True)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(UNIT)
    return unit["Service"]


def test_systemd_waits_for_the_parents_word_and_then_for_its_signs_of_life(service: configparser.SectionProxy) -> None:
    assert (service["Type"], service["NotifyAccess"]) == ("notify", "main")
    assert int(service["WatchdogSec"]) >= 10
    assert service["ExecStart"].endswith("/batuta up")


def test_it_is_started_again_unless_that_could_change_nothing(service: configparser.SectionProxy) -> None:
    assert service["Restart"] == "always"
    assert int(service["RestartPreventExitStatus"]) == EXIT_CONFIG
    assert "StartLimitIntervalSec=0" in UNIT.read_text()


def test_a_stop_has_the_time_that_every_role_may_take(service: configparser.SectionProxy) -> None:
    drains = load(EngineSettings, {}).batuta_drain_seconds + MARGIN.total_seconds()
    assert service["KillMode"] == "mixed"
    assert int(service["TimeoutStopSec"]) >= ROLES * drains


def test_a_process_that_is_asked_for_its_stack_writes_no_memory_to_disk(service: configparser.SectionProxy) -> None:
    assert service["LimitCORE"] == "0"


def test_it_runs_as_nobody_special_and_holds_no_secret(service: configparser.SectionProxy) -> None:
    assert service["User"] != "root"
    assert (service["NoNewPrivileges"], service["ProtectSystem"], service["CapabilityBoundingSet"]) == (
        "true",
        "strict",
        "",
    )
    assert not re.search(r"TOKEN|SECRET|PASSWORD|KEY", service["Environment"])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed here")
def test_systemd_itself_understands_every_line(tmp_path: Path) -> None:
    here = UNIT.read_text().replace("/srv/batuta/.venv/bin/batuta", sys.executable)
    (tmp_path / UNIT.name).write_text(here)
    asked = subprocess.run(
        ["systemd-analyze", "verify", tmp_path / UNIT.name], capture_output=True, text=True, check=False, timeout=60
    )
    assert [line for line in asked.stderr.splitlines() if UNIT.name in line] == []
