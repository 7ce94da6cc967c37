"""Each process has a ``/metrics`` page with its own figures. The API's page also has figures from the database."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from batuta import Batuta, Failed
from batuta.cli.roles import serve_metrics
from batuta.config import EngineSettings, load_settings
from batuta.guard.rate import Limit
from batuta.kernel.events import ItemsSettled
from batuta.supervise.supervisor import Supervisor
from batuta.tasks.task import TaskContext
from batuta.testing import EventRecorder
from batuta.web import create_api
from tests import ROOT
from tests.servers import free_port


def readable(text: str) -> dict[str, float]:
    """Return every sample by name and labels. Fail if a scraper could not parse the text."""
    return {
        f"{sample.name}{{{','.join(f'{k}={v}' for k, v in sorted(sample.labels.items()))}}}": sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def scraped(work: Batuta) -> dict[str, float]:
    api = create_api(work, load_settings(EngineSettings, {}))
    transport = httpx2.ASGITransport(app=api, client=("127.0.0.1", 5000))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
        answer = await client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return readable(answer.text)


@pytest.fixture
async def work(database_url: str, events: EventRecorder) -> AsyncIterator[Batuta]:
    made = Batuta(database_url, timezone="UTC")
    made.events.subscribe(events)

    @made.task()
    async def normaliza(ctx: TaskContext) -> None: ...

    @made.task(retry=[])
    async def quebra(ctx: TaskContext) -> Failed:
        return Failed("não deu", permanent=True)

    made.job("0 3 * * *", name="resumo")(lambda: None)
    async with made:
        yield made


@asynccontextmanager
async def running(supervisor: Supervisor) -> AsyncIterator[None]:
    stop = asyncio.Event()
    going = asyncio.create_task(supervisor.run(stop, timedelta(seconds=5)))
    try:
        yield
    finally:
        stop.set()
        await going


async def test_items_are_counted_by_state_and_future_items_are_not_late(work: Batuta) -> None:
    await work.enqueue("normaliza", delay=3600)
    figures = await scraped(work)
    assert figures["batuta_queue_items{queue=default,state=later}"] == 1
    assert figures["batuta_queue_oldest_due_age_seconds{queue=default}"] == 0
    await work.enqueue("normaliza")
    figures = await scraped(work)
    assert figures["batuta_queue_items{queue=default,state=due}"] == 1
    assert 0 < figures["batuta_queue_oldest_due_age_seconds{queue=default}"] < 60


async def test_dead_items_and_the_work_of_a_worker_are_counted(work: Batuta, events: EventRecorder) -> None:
    await work.enqueue("normaliza")
    await work.enqueue("quebra")
    supervisor = work.supervisor()
    async with (
        serve_metrics(
            work, load_settings(EngineSettings, {"BATUTA_METRICS_PORT": str(port := free_port())}), "worker", supervisor
        ),
        running(supervisor),
    ):
        await events.wait_for(ItemsSettled, lambda event: "dead" in event.counts)
        await events.wait_for(ItemsSettled, lambda event: "done" in event.counts)
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            assert (await client.get("/health")).json()["service"] == "batuta-worker"
            assert (await client.get("/health/ready", params={"strict": "1"})).json()["status"] == "ready"
            assert (await client.get("/metrics", headers={"Host": "evil.example"})).status_code == 401
            own = readable((await client.get("/metrics")).text)
    assert own["batuta_queue_items_claimed_total{queue=default}"] == 2
    assert own["batuta_queue_items_settled_total{outcome=dead,queue=default}"] == 1
    assert own["batuta_queue_handler_duration_seconds_count{queue=default}"] == 2
    assert own["batuta_queue_wait_seconds_count{queue=default}"] == 2
    assert own["batuta_queue_wait_seconds_sum{queue=default}"] > 0
    assert own["batuta_loop_last_progress_timestamp_seconds{loop=worker:default}"] > 1.7e9
    assert own["batuta_loop_failing{loop=worker:default}"] == 0
    assert own["batuta_database_call_duration_seconds_count{call=statement}"] > 0
    assert not any(name.startswith("batuta_queue_items{") for name in own)  # only the api's page has this metric
    figures = await scraped(work)
    assert figures["batuta_queue_items{queue=default,state=dead}"] == 1
    assert figures["batuta_queue_items{queue=default,state=due}"] == 0


async def test_job_figures_agree_with_health(work: Batuta) -> None:
    (job,) = work.registry
    await work.scheduler().run_by_hand(job)
    figures = await scraped(work)
    assert figures["batuta_job_last_day_runs{job=resumo,status=success}"] == 1
    assert figures["batuta_job_stale{job=resumo}"] == figures["batuta_job_running{job=resumo}"] == 0
    assert figures["batuta_job_next_fire_timestamp_seconds{job=resumo}"] > 1.7e9


async def test_circuits_are_counted_by_state_and_a_family_as_one(work: Batuta) -> None:
    work.circuit("evolution")
    work.circuit("chip:*", failures=1)
    await work.circuits.breaker("chip:5511900000001").trip("o número caiu")
    figures = await scraped(work)
    assert figures["batuta_circuits{circuit=evolution,state=closed}"] == 1
    assert figures["batuta_circuits{circuit=chip:*,state=open}"] == 1
    assert not any("5511900000001" in name for name in figures)


async def test_rate_limit_shows_its_use_and_none_per_person(work: Batuta) -> None:
    everybody = work.limit(Limit(name="hora", key="envios", most=20, per=timedelta(hours=1)))
    work.limit(Limit(name="médico", key="medico", most=3, per=timedelta(hours=1), each=True))
    await work.rates.reserve([everybody])
    figures = await scraped(work)
    assert figures["batuta_rate_limit_used{limit=hora}"] == 1
    assert figures["batuta_rate_limit_most{limit=hora}"] == 20
    assert not any("médico" in name for name in figures)


async def test_unavailable_database_removes_only_its_own_figures(work: Batuta) -> None:
    await work.close()
    figures = await scraped(work)
    assert figures["batuta_reading_up{reading=jobs}"] == figures["batuta_reading_up{reading=queues}"] == 0
    assert figures["process_start_time_seconds{}"] > 0
    assert sum(count for name, count in figures.items() if name.startswith("batuta_database_errors_total")) >= 2
    assert not any(name.startswith("batuta_queue_items{") for name in figures)
    await work.open()


async def test_taken_port_is_one_sentence(work: Batuta) -> None:
    from batuta.kernel.errors import AddressTaken

    settings = load_settings(EngineSettings, {"BATUTA_METRICS_PORT": str(free_port())})
    async with serve_metrics(work, settings, "worker", work.supervisor()):
        with pytest.raises(AddressTaken, match="BATUTA_METRICS_PORT"):
            async with serve_metrics(work, settings, "worker", work.supervisor()):
                raise AssertionError("never here")


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[int]:
    """Run `batuta up` with enough free ports, and yield the port of the parent process."""
    base, port = free_port(3), free_port()
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("BATUTA_", "API_"))},
        "DATABASE_URL": f"sqlite:///{tmp_path}/up.db",
        "BATUTA_METRICS_PORT": str(base),
        "PORT": str(port),
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
    }
    command = [sys.executable, "-m", "batuta", "--app", "tests.faults.parent_plant:work", "up"]
    up = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL)
    yield base
    up.send_signal(signal.SIGTERM)
    up.wait(60)


async def test_each_process_under_up_has_its_page(tree: int) -> None:
    roles: list[str] = []
    async with httpx2.AsyncClient() as client:
        for port in range(tree, tree + 3):
            text = await _patiently(client, f"http://127.0.0.1:{port}/metrics")
            roles += re.findall(r'batuta_build_info\{.*role="(\w+)"', text)
        assert roles == ["up", "scheduler", "worker"]
        assert await _when_ready(client, f"http://127.0.0.1:{tree}/health/ready?strict=1") == {"processes": "ok"}


async def _when_ready(client: httpx2.AsyncClient, url: str) -> object:
    for _ in range(300):
        if (answer := await client.get(url)).status_code == 200:
            return answer.json()["checks"]
        await asyncio.wait([asyncio.create_task(asyncio.Event().wait())], timeout=0.1)
    raise AssertionError(answer.text)


async def _patiently(client: httpx2.AsyncClient, url: str) -> str:
    for _ in range(1200):
        try:
            return (await client.get(url)).text
        except httpx2.ConnectError:
            await asyncio.wait([asyncio.create_task(asyncio.Event().wait())], timeout=0.1)
    raise AssertionError(f"no process answers at {url}")
