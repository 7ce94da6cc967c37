"""The systemd unit and compose.yaml give the processes enough time to stop."""

import configparser
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from batuta.cli.roles import longest_stop
from batuta.config import EngineSettings, load_settings
from batuta.processes.restarts import EXIT_CONFIG
from batuta.processes.tree import KILLING
from batuta.supervise.shutdown import EXIT_MARGIN

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "deploy" / "batuta.service"


@pytest.fixture
def service() -> configparser.SectionProxy:
    unit = configparser.ConfigParser(interpolation=None, strict=True)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(UNIT)
    return unit["Service"]


def test_systemd_waits_for_ready_and_watches_the_keep_alive(service: configparser.SectionProxy) -> None:
    assert (service["Type"], service["NotifyAccess"]) == ("notify", "main")
    assert int(service["WatchdogSec"]) >= 10
    assert service["ExecStart"].endswith("/batuta up")


def test_systemd_restarts_the_service_except_after_a_configuration_error(service: configparser.SectionProxy) -> None:
    assert service["Restart"] == "always"
    assert int(service["RestartPreventExitStatus"]) == EXIT_CONFIG
    assert "StartLimitIntervalSec=0" in UNIT.read_text()


def test_systemd_kills_no_process_within_its_grace_period(service: configparser.SectionProxy) -> None:
    """systemd must give the parent process enough time to kill a child that exceeds its stop limit, read the child's
    last output and exit.
    """
    parent = longest_stop(load_settings(EngineSettings, {})) + KILLING + EXIT_MARGIN
    assert service["KillMode"] == "mixed"
    assert int(service["TimeoutStopSec"]) >= parent.total_seconds()


def test_compose_kills_no_process_within_its_grace_period() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    ours = {name: each for name, each in services.items() if each.get("image") == "batuta" and name != "migrate"}
    assert set(ours) >= {"api", "scheduler", "worker", "arq"}
    for name, each in ours.items():
        default = re.fullmatch(r"\$\{STOP_GRACE_PERIOD:-(\d+)s\}", each["stop_grace_period"])
        assert default is not None, name
        assert int(default[1]) >= longest_stop(load_settings(EngineSettings, {})).total_seconds(), name


def test_kubernetes_probes_every_role_and_waits_for_its_stop() -> None:
    documents = [*yaml.safe_load_all((ROOT / "deploy" / "kubernetes.yaml").read_text())]
    settings = load_settings(EngineSettings, {**documents[0]["data"], "API_TOKEN": "t" * 32, "SECRET_KEY": "k" * 32})
    ports = {"http": settings.port, "metrics": settings.batuta_metrics_port}
    roles = set[str]()
    for document in documents[1:]:
        pod = document["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        roles.add(container["args"][1])
        assert pod["terminationGracePeriodSeconds"] >= longest_stop(settings).total_seconds()
        (port,) = container["ports"]
        assert port["containerPort"] == ports[port["name"]]
        for probe, path in (("livenessProbe", "/health"), ("readinessProbe", "/health/ready?strict=1")):
            assert container[probe]["httpGet"] == {"path": path, "port": port["name"]}
    assert roles == {"api", "scheduler", "worker"}


def test_documents_name_both_stop_limits() -> None:
    """The documents mention BATUTA_DRAIN_SECONDS together with STOP_GRACE_PERIOD, because an operator who raises one
    must also raise the other.
    """
    for document in ("docs/deploy.md", "docs/operations.md", "docs/operacao.md"):
        text = (ROOT / document).read_text()
        assert {"BATUTA_DRAIN_SECONDS", "STOP_GRACE_PERIOD"} <= set(re.findall(r"[A-Z_]{5,}", text)), document


def test_aborted_process_writes_no_core_dump(service: configparser.SectionProxy) -> None:
    assert service["LimitCORE"] == "0"


def test_unit_has_no_privileges_and_no_secret(service: configparser.SectionProxy) -> None:
    assert service["User"] != "root"
    assert (service["NoNewPrivileges"], service["ProtectSystem"], service["CapabilityBoundingSet"]) == (
        "true",
        "strict",
        "",
    )
    assert not re.search(r"TOKEN|SECRET|PASSWORD|KEY", service["Environment"])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed here")
def test_systemd_accepts_every_line_of_the_unit(tmp_path: Path) -> None:
    here = UNIT.read_text().replace("/srv/batuta/.venv/bin/batuta", sys.executable)
    (tmp_path / UNIT.name).write_text(here)
    asked = subprocess.run(
        ["systemd-analyze", "verify", tmp_path / UNIT.name], capture_output=True, text=True, check=False, timeout=60
    )
    assert [line for line in asked.stderr.splitlines() if UNIT.name in line] == []
