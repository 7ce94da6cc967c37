"""The curl commands in the operators' manuals work as written, from this machine and without a token. The tests change
only the host name.
"""

import shlex
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx2
import pytest

from app.composition.julia import julia_of
from app.main import build
from app.settings import Settings
from app.web.api import create_app
from batuta.testing import FakeClock
from tests.julia.tables import add_chip, add_doctor

SERVICE = "https://api.example.com"
HERE = "http://localhost:8000"
# Calls as written in the manual, and the fields that an operator looks for in the answer.
CALLS: list[tuple[str, Sequence[str]]] = [
    ("curl https://api.example.com/health", ("status", "timestamp")),
    ("curl https://api.example.com/health/jobs", ("status", "jobs", "alerts")),
    ("curl https://api.example.com/health/jobs | jq '.jobs.processar_grupos'", ("last_run", "is_stale")),
    ("curl https://api.example.com/health/jobs | jq '.jobs.heartbeat'", ("last_run", "sla_seconds")),
    ("curl https://api.example.com/health/fila", ("status", "alerts", "metrics", "thresholds")),
    ("curl https://api.example.com/health/fila | jq", ("status", "metrics")),
    ("curl https://api.example.com/health/alerts", ("status", "total_alerts", "alerts")),
    ("curl https://api.example.com/health/score", ("score", "max_score", "level", "breakdown")),
    ("curl https://api.example.com/health/rate-limit | jq", ("rate_limit",)),
    ("curl https://api.example.com/health/chips | jq '.summary'", ("total", "disponiveis", "trust_medio")),
    ("curl https://api.example.com/health/circuits | jq", ("circuits",)),
    (
        'curl "https://api.example.com/health/circuits/history?circuit_name=evolution&horas=24" | jq',
        ("circuit_filter", "period_hours", "transitions"),
    ),
]
# Every job of messages, campaigns and chips, called by hand as the manual shows.
JOBS = (
    "heartbeat",
    "processar-mensagens-agendadas",
    "processar-campanhas-agendadas",
    "verificar-whatsapp",
    "sincronizar-chips",
    "validar-telefones",
    "atualizar-trust-scores",
    "snapshot-chips-diario",
    "resetar-contadores-chips",
)


@pytest.fixture
async def client(julia_url: str, clock: FakeClock) -> AsyncIterator[httpx2.AsyncClient]:
    settings = Settings(database_url=julia_url)
    async with build(settings, clock).work as work:
        await work.reports.expect(now=clock.now())
        await add_doctor(work.database)
        await add_chip(work.database)
        transport = httpx2.ASGITransport(app=create_app(julia_of(work)), client=("127.0.0.1", 5000))
        async with httpx2.AsyncClient(transport=transport) as client:
            yield client


async def _answered(client: httpx2.AsyncClient, command: str) -> Any:
    """Return what the shell command ``curl [-X METHOD] URL [| jq [PATH]]`` would print."""
    curl, _, shown = command.partition("|")
    words = shlex.split(curl)[1:]
    method = words[words.index("-X") + 1] if "-X" in words else "GET"
    answer = await client.request(method, words[-1].replace(SERVICE, HERE))
    assert answer.status_code == 200, f"{command}: {answer.status_code} {answer.text}"
    document, path = answer.json(), (shlex.split(shown)[1:] or ["."])[0]
    for name in filter(None, path.split(".")):
        document = document[name]
    return document


@pytest.mark.parametrize(("command", "fields"), CALLS, ids=[command.split("/", 3)[-1] for command, _ in CALLS])
async def test_call_of_the_manual_shows_the_fields_that_operators_need(
    client: httpx2.AsyncClient, command: str, fields: Sequence[str]
) -> None:
    document = await _answered(client, command)
    assert [field for field in fields if field not in document] == []


@pytest.mark.parametrize("endpoint", JOBS)
async def test_every_job_of_the_messages_can_be_run_by_hand(client: httpx2.AsyncClient, endpoint: str) -> None:
    document = await _answered(client, f"curl -X POST http://localhost:8000/jobs/{endpoint}")
    assert document["status"] in ("ok", "skipped")
