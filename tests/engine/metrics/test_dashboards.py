"""The dashboards and alert rules in deploy/ use only metrics, labels and label values that ``/metrics`` provides."""

import json
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from batuta import Batuta
from batuta.config import EngineSettings, load_settings
from batuta.guard.rate import Limit
from batuta.metrics.counting import BUCKETS, MetricsSubscriber
from batuta.runlog.execution import Status
from batuta.web import create_api
from scripts import dashboards
from tests import ROOT

RULES = ROOT / "deploy" / "prometheus" / "alerts.yml"
# Labels that Prometheus adds to every series.
ADDED = {"instance"}
SERIES = re.compile(r"\b((?:batuta|process)_\w+|up)\b(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"')
GROUPED = re.compile(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)")
LEGEND = re.compile(r"\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}")


class Recorded:
    """A stand-in for the metrics registry that records the labels of each metric."""

    def __init__(self) -> None:
        self.labels: dict[str, set[str]] = {}

    def counter(self, name: str, meaning: str, labels: str) -> Any:
        self.labels[f"batuta_{name}_total"] = set(labels.split())

    def histogram(self, name: str, meaning: str, labels: str, buckets: tuple[float, ...] = BUCKETS) -> Any:
        for suffix, more in (("_bucket", {"le"}), ("_count", set()), ("_sum", set())):
            self.labels[f"batuta_{name}{suffix}"] = {*labels.split(), *more}


async def known(url: str) -> tuple[dict[str, set[str]], dict[tuple[str, str], set[str]]]:
    """Return the labels of each metric, and the values that each label has on a ``/metrics`` page."""
    recorded = Recorded()
    MetricsSubscriber(recorded)
    work = Batuta(url)
    work.job("0 3 * * *", name="report")(lambda: None)
    work.task(name="send")(lambda: None)
    work.circuit("printer")
    work.limit(Limit(name="letters", key="letters", most=3, per=timedelta(hours=1)))
    labels, values = dict(recorded.labels), defaultdict[tuple[str, str], set[str]](set)
    labels["batuta_database_errors_total"] = {"error"}
    labels["batuta_loop_last_progress_timestamp_seconds"] = labels["batuta_loop_failing"] = {"loop"}
    labels["batuta_loop_stuck_after_seconds"] = {"loop"}
    labels["up"] = {"job"}
    async with work:
        api = create_api(work, load_settings(EngineSettings, {}))
        transport = httpx2.ASGITransport(app=api, client=("127.0.0.1", 5000))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
            page = (await client.get("/metrics")).text
    for family in text_string_to_metric_families(page):
        labels.setdefault(family.name, set())
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)
            for label, value in sample.labels.items():
                values[sample.name, label].add(value)
    return labels, values


def expressions() -> Iterator[tuple[str, set[str]]]:
    """Yield each query expression with the labels that its legend or its alert text uses."""
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["expr"], {*LEGEND.findall(" ".join(rule["annotations"].values()))}
    for file in dashboards.LANGUAGES.values():
        board = json.loads((dashboards.FOLDER / file).read_text())
        for panel in board["panels"]:
            for target in panel["targets"]:
                yield target["expr"], {*LEGEND.findall(target["legendFormat"])}


async def test_every_metric_and_label_exists(tmp_path: Path) -> None:
    labels, values = await known(f"sqlite:///{tmp_path}/metrics.db")
    values[("batuta_job_runs_total", "status")] = {status.value for status in Status}
    wrong = list[str]()
    for expression, shown in expressions():
        found = SERIES.findall(expression)
        assert found, expression
        allowed = {label for name, _ in found for label in labels.get(name, set())} | ADDED
        wrong += [f"{name}: no such metric ({expression})" for name, _ in found if name not in labels]
        used = shown | {label.strip() for group in GROUPED.findall(expression) for label in group.split(",")}
        wrong += [f"{label}: no such label ({expression})" for label in used - allowed]
        for name, matchers in found:
            for label, value in MATCHER.findall(matchers):
                if label not in labels.get(name, set()):
                    wrong.append(f"{name} has no label {label}")
                elif (seen := values.get((name, label))) and not value.startswith("$"):
                    wrong += [f"{name}: {label} is never {each}" for each in value.split("|") if each not in seen]
    assert wrong == []


def test_dashboards_are_generated_and_alerts_speak_both_languages() -> None:
    for language, file in dashboards.LANGUAGES.items():
        written = (dashboards.FOLDER / file).read_text(encoding="utf-8")
        assert written == dashboards.dashboard(language), "run `python -m scripts.dashboards`"
    rules = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    assert [rule["alert"] for rule in rules if {*rule["annotations"]} != {"summary", "resumo"}] == []


def test_scrape_configuration_keeps_the_label_job() -> None:
    (scrape,) = yaml.safe_load((RULES.parent / "prometheus.yml").read_text())["scrape_configs"]
    assert scrape["honor_labels"] is True


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_prometheus_accepts_the_rules() -> None:
    done = subprocess.run(["promtool", "check", "rules", str(RULES)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
