"""The API conforms to its OpenAPI document. A fuzzer sends every request that the document allows, and invalid ones."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import jsonschema_rs
import pytest

from app.main import build
from app.settings import Settings
from batuta.config import load_settings
from tests.faults.figures import LONG
from tests.faults.processes import ROOT, until
from tests.faults.waiting import TIMEOUT
from tests.julia.web.test_api import BEARER, TOKEN, Julia, open_julia
from tests.servers import free_port

WEBHOOK = {"X-Webhook-Secret": "w" * 32}
# Generated requests for each operation, in addition to those that cover each constraint of the document once.
EXAMPLES = 30 if LONG else 2
SEED = 46
# Files of Hypothesis about Unicode. A folder that stays spares each run the two seconds that they take.
KEPT = ROOT / ".hypothesis"
# In the short form, the fuzzer sends less. The framework refuses every method that a route does not have, so two such
# methods are enough. For the constraints of create_campanha, the fuzzer would slowly build texts of 4,000 characters
# from the pattern of a message. A separate test, test_each_limit_of_a_campaign_is_the_one_of_the_document, checks these
# constraints.
SHORT = """
[phases.coverage]
unexpected-methods = ["PUT", "TRACE"]
[[operations]]
include-operation-id = "create_campanha"
phases.coverage.enabled = false
"""


async def _pause(url: str) -> None:
    async with build(load_settings(Settings, {"DATABASE_URL": url})).work as work:
        await work.switches.set("pause.all", True, by="test", reason="-", now=work.clock.now())


@pytest.fixture
def served(tmp_path: Path, julia_url: str) -> Iterator[tuple[str, Path]]:
    """Start Julia in production mode under `uvicorn`, and yield its address and its log. A scheduler that fires no jobs
    is also running.
    """
    asyncio.run(_pause(julia_url))
    port, log = free_port(), tmp_path / "log"
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("BATUTA_", "API_"))},
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
        "DATABASE_URL": julia_url,
        "APP_ENV": "production",
        "SECRET_KEY": "k" * 32,
        "API_TOKEN": TOKEN,
        "WEBHOOK_SECRET": WEBHOOK["X-Webhook-Secret"],
        "LOG_FORMAT": "json",
        "BATUTA_REFUSALS_PER_MINUTE": "1000000",
    }
    uvicorn = [sys.executable, "-m", "uvicorn", "app.main:app", "--port", str(port)]
    with log.open("wb") as stream:
        serving = subprocess.Popen(uvicorn, cwd=tmp_path, env=env, stdout=stream, stderr=subprocess.STDOUT)
    # Without a scheduler, health would rightly become critical during a long run.
    scheduler = [sys.executable, "-m", "batuta", "--app", "app.main:work", "scheduler"]
    beside = subprocess.Popen(scheduler, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until("it answers", lambda: _answers(port))
        yield f"http://127.0.0.1:{port}", log
    finally:
        for process in (beside, serving):
            process.send_signal(signal.SIGTERM)
        for process in (beside, serving):
            process.wait(TIMEOUT)


@pytest.mark.timeout(1800)
def test_every_valid_or_invalid_request_is_answered_as_the_document_says(
    served: tuple[str, Path], tmp_path: Path
) -> None:
    address, log = served
    (tmp_path / "schemathesis.toml").write_text("" if LONG else SHORT)
    asked = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "run", f"{address}/openapi.json"),
            *("--checks", "all", "--mode", "all", "--phases", "examples,coverage,fuzzing", "--no-color"),
            *("--max-examples", str(EXAMPLES), "--seed", str(SEED), "--generation-deterministic"),
            # OpenAPI cannot describe a valid spreadsheet or the size of a file; tests/julia/agendamentos/test_api.py and
            # tests/julia/telegram/test_acoes.py test them.
            *("--exclude-operation-id", "import_appointments", "--exclude-operation-id", "send_telegram_file"),
            *("--header", f"Authorization: Bearer {TOKEN}", "--request-timeout", "300"),
        ],
        # The client reads all variables for each request, so it gets few.
        env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HYPOTHESIS_STORAGE_DIRECTORY": str(KEPT)},
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert asked.returncode == 0, asked.stdout.partition("= FAILURES =")[2][:6000] + asked.stderr[-2000:]
    facts = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    assert [fact for fact in facts if fact["event"] in ("request crashed", "job crashed")] == []
    assert sum(fact["event"] == "request answered" for fact in facts) > 20, "nothing was asked, so nothing was tested"


CAMPAIGN: dict[str, Any] = {"nome_template": "Teste", "tipo_campanha": "discovery", "corpo": "Olá, {nome}."}
# Values for each field of a campaign, on both sides of its limits.
FIELDS: dict[str, list[Any]] = {
    "nome_template": ["x", "x" * 120, "x" * 121, "", " x", "a\tb", "a\x00"],
    "tipo_campanha": ["discovery", "outro", ""],
    "corpo": ["x" * 4_000, "x" * 4_001, "", " ", " {nome}", "{{especialidade}}", "{ nome }!", "{outro}", "{", "a\x07"],
    "objetivo": ["", "x" * 2_000, "x" * 2_001, "a\x00"],
    "pode_ofertar": [True, "true", 1],
    "another": ["x"],
}
FILTERS: dict[str, list[Any]] = {
    **{
        name: [[], ["x"], ["x" * 200], ["x" * 201], [""], ["x"] * 200, ["x"] * 201, [1]]
        for name in ("especialidades", "regioes", "chips_excluidos")
    },
    "clientes_especificos": [[], ["x"], [""], [1]],
    "quantidade_alvo": [1, 0, -1, 10**9, "1", 1.5],
    "pressure_score_max": [0, 100, -1, 101, "1"],
    "modo_selecao": ["aleatorio", "outro"],
    "excluir_opt_out": [True, False],
    "another": ["x"],
}
OTHER_TYPES: list[Any] = [None, 1, "x", [], {}, True]


async def test_each_limit_of_a_campaign_is_the_one_of_the_document(julia: Julia) -> None:
    document = julia.api.openapi()
    body = document["paths"]["/campanhas"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    described = jsonschema_rs.Draft202012Validator(
        {**body, "components": document["components"]}, validate_formats=True
    )
    filters = [{name: value} for name, values in FILTERS.items() for value in [*values, *OTHER_TYPES]]
    asked: list[Any] = [
        *({key: value for key, value in CAMPAIGN.items() if key != name} for name in CAMPAIGN),
        *({**CAMPAIGN, name: value} for name, values in FIELDS.items() for value in [*values, *OTHER_TYPES]),
        *({**CAMPAIGN, "audience_filters": value} for value in [*filters, *OTHER_TYPES]),
        *OTHER_TYPES,
    ]
    wrong = []
    async with julia.client() as client:
        for each in asked:
            answer = await client.post("/campanhas", json=each, headers=BEARER)
            expected = 201 if described.is_valid(each) else 422
            wrong += [] if answer.status_code == expected else [(str(each)[:200], answer.status_code, expected)]
    assert wrong == []


def _answers(port: int) -> bool:
    try:
        return httpx2.get(f"http://127.0.0.1:{port}/health").status_code == 200
    except httpx2.HTTPError:
        return False


@pytest.fixture
async def julia(database_url: str) -> AsyncIterator[Julia]:
    """Julia on SQLite and on PostgreSQL, because each database accepts texts that the other rejects."""
    secrets = {"WEBHOOK_SECRET": WEBHOOK["X-Webhook-Secret"], "SECRET_KEY": "k" * 32}
    opened = await open_julia(database_url, APP_ENV="production", **secrets)
    yield opened
    await opened.work.close()


STRANGE = [
    "", " ", "0", "-1", "1e400", "NaN", "9" * 19, "9" * 400, "-" + "9" * 400, "%00", "a%00b", "%ED%A0%80", "%FF%FE", "%C3%28",
    "%F0%9F%92%A9", "%E2%80%AE", "true", "null", "[]", "%7B%7D", "0001-01-01T00:00:00%2B23:59", "9999-12-31T23:59:59-23:59",
    "2026-02-30", "../../etc/passwd", "%2e%2e%2f", "'%3B DROP TABLE tasks%3B--", "<script>", "x" * 6000, "%0d%0aX-Evil: 1",
]  # fmt: skip


async def test_strange_value_in_any_place_is_not_a_server_error(julia: Julia) -> None:
    places = [
        "/health/ready?strict={}", "/health/jobs?strict={}", "/health/circuits/history?horas={}",
        "/health/circuits/history?circuit_name={}", "/jobs?lang={}", "/painel?q={}&estado={}&categoria={}",
        "/painel/execucoes?antes={}", "/painel/execucoes?situacao={}", "/painel/execucoes?tarefa={}", "/painel/execucoes/{}",
        "/painel/tarefas/{}", "/painel/static/{}", "/painel/entrar?para={}", "/docs?lang={}", "/{}", "/health/{}", "/painel/{}",
    ]  # fmt: skip
    async with julia.client() as client:
        for place in places:
            for n, value in enumerate(STRANGE):
                path = place.replace("{}", value)
                answer = await client.get(path, headers={**BEARER, "Accept": "text/html" if n % 2 else "*/*"})
                assert answer.status_code < 500, (path[:200], answer.status_code, answer.text[:300])


async def test_job_accepts_any_parameter_and_reports_errors(julia: Julia) -> None:
    async with julia.client() as client:
        for value in STRANGE:
            for path in (
                f"/jobs/{value}",
                f"/jobs/conta?x={value}",
                f"/jobs/conta?{value}=x",
                f"/jobs/heartbeat?x={value}",
            ):
                answer = await client.post(path, headers=BEARER)
                assert answer.status_code < 500, (path[:200], answer.text[:300])
            for header in (
                "Idempotency-Key",
                "X-Batuta-Deadline",
                "X-Batuta-Timeout",
                "X-Request-Id",
                "traceparent",
                "Accept-Language",
                "Cookie",
            ):
                raw = value.replace("%0d%0a", " ").encode() + b"\xff\xfe"
                answer = await client.post(
                    "/jobs/conta", headers={b"Authorization": BEARER["Authorization"].encode(), header.encode(): raw}
                )
                assert answer.status_code < 500 or answer.status_code == 504, (header, value[:80], answer.text[:300])


@pytest.mark.parametrize(
    "deadline",
    [
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59-23:59",
        "9999-12-31T23:59:59.999999+00:00",
        "1e300",
        "-62135596800",
        "99999999999",
    ],
)
async def test_impossible_deadline_is_answered(julia: Julia, deadline: str) -> None:
    answer = await julia.ask("POST", "/jobs/conta", headers={**BEARER, "X-Batuta-Deadline": deadline})
    assert answer.status_code in (200, 400, 422, 504)


@pytest.mark.parametrize("body", [b"\x00", b"\xff" * 10, b"[" * 100_000, b'{"a":' * 50_000, b'"\\ud800"', b"1" * 5000])
async def test_strange_body_is_not_a_server_error(julia: Julia, body: bytes) -> None:
    for path in ("/jobs/conta", "/webhook/evolution", "/painel/entrar", "/painel/sair"):
        for kind in ("application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
            answer = await julia.ask("POST", path, content=body, headers={**BEARER, **WEBHOOK, "Content-Type": kind})
            assert answer.status_code < 500, (path, kind, answer.text)


async def test_strange_field_of_a_delivery_is_not_a_server_error(julia: Julia) -> None:
    strange: list[Any] = [
        *(
            None,
            True,
            0,
            -1,
            2**63,
            2**64,
            -(2**70),
            10**400,
            1e308,
            "",
            "\x00",
            "a\x00b",
            "\ud800",
            "x" * 70_000,
            [],
            [[]],
            {},
        ),
        *({"x": "\x00"}, ["\udfff"], "0001-01-01T00:00:00Z", "99999-01-01", {"\x00": 1}, {"\ud800": 1}),
    ]
    whole: dict[str, Any] = {
        "event": "messages.upsert",
        "instance": "julia-01",
        "date_time": "2026-01-05T12:00:00.000Z",
        "data": {
            "key": {"remoteJid": "5511900000001@s.whatsapp.net", "fromMe": False, "id": "3EB0A1"},
            "pushName": "Pessoa Um",
            "message": {"conversation": "oi"},
            "messageType": "conversation",
            "messageTimestamp": 1767614400,
            "status": "DELIVERY_ACK",
        },
    }
    wrong = []
    for event in ("messages.upsert", "connection.update"):
        for place in _places(whole):
            for value in strange:
                body = json.dumps(_with({**whole, "event": event}, place, value))
                answer = await julia.ask("POST", "/webhook/evolution", content=body, headers=WEBHOOK)
                wrong += [(event, place, str(value)[:80])] if answer.status_code >= 500 else []
    assert wrong == []


def _places(document: dict[str, Any], before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in document.items():
        yield (*before, name)
        if isinstance(value, dict):
            yield from _places(value, (*before, name))


def _with(document: dict[str, Any], place: tuple[str, ...], value: Any) -> dict[str, Any]:
    first, *rest = place
    return {**document, first: _with(document[first], tuple(rest), value) if rest else value}
