"""``POST /webhook/evolution``: deliveries are authenticated, stored, answered, and processed by the worker."""

import asyncio
import base64
import hashlib
import hmac
import json
import shlex
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import httpx2
import pytest

from app.composition.development.simulator import SIMULATED
from app.contexts.grupos.fila import Estagio
from app.contexts.webhooks.inbox import WEBHOOK_INBOX
from batuta.kernel.clock import SystemClock
from batuta.testing import FakeClock
from tests import ROOT
from tests.julia.tables import PHONE, add_doctor, one, rows
from tests.julia.web.test_api import BEARER, Julia, open_julia

SECRET = "segredo-de-teste"
PATH = "/webhook/evolution"
ELSEWHERE = "203.0.113.7"
DESK = {
    "CHATWOOT_URL": "http://127.0.0.1:9",
    "CHATWOOT_TOKEN": "ficha-de-teste",
    "CHATWOOT_ACCOUNT_ID": "1",
    "CHATWOOT_INBOX_ID": "1",
    "CHATWOOT_WEBHOOK_SECRET": "outro-segredo-de-teste",
}


@pytest.fixture
async def julia(julia_url: str) -> AsyncIterator[Julia]:
    opened = await open_julia(julia_url, WEBHOOK_SECRET=SECRET)
    async with opened.work:
        yield opened


def delivery(text: str = "Olá", id: str = "3EB0A", event: str = "messages.upsert") -> dict[str, Any]:
    key = {"id": id, "remoteJid": f"{PHONE}@s.whatsapp.net", "fromMe": False}
    data = {"key": key, "message": {"conversation": text}, "messageType": "conversation"}
    return {"event": event, "instance": "julia-sim", "data": data, "apikey": "chave-da-instancia"}


def jwt(secret: str, now: datetime, *, lives: int = 600, alg: str = "HS256", action: str = "webhook") -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    at = int(now.timestamp())
    signed = f"{part({'alg': alg, 'typ': 'JWT'})}.{part({'iat': at, 'exp': at + lives, 'app': 'evolution', 'action': action})}"
    signature = base64.urlsafe_b64encode(hmac.digest(secret.encode(), signed.encode(), hashlib.sha256)).rstrip(b"=")
    return f"{signed}.{signature.decode()}"


async def post(julia: Julia, path: str = PATH, **options: Any) -> httpx2.Response:
    async with julia.client(ELSEWHERE, "http://api.exemplo.test") as client:
        return await client.post(path, **{"json": delivery(), **options})


async def test_delivery_is_stored_before_the_answer_and_a_repeat_is_harmless(julia: Julia) -> None:
    headers = {"X-Webhook-Secret": SECRET}
    first, again = await post(julia, headers=headers), await post(julia, headers=headers)
    assert [(each.status_code, each.json()) for each in (first, again)] == [
        (200, {"status": "ok", "new": True}), (200, {"status": "ok", "new": False}),
    ]  # fmt: skip
    row = await one(julia.work.database, "SELECT canal, instance_name, status FROM webhook_inbox")
    assert row == {"canal": "evolution", "instance_name": "julia-sim", "status": "pendente"}


async def test_each_credential_of_the_gateway_is_accepted(julia: Julia) -> None:
    now = SystemClock().now()
    for path, headers in (
        (PATH, {"X-Webhook-Secret": SECRET}),
        (PATH, {"Authorization": f"Bearer {jwt(SECRET, now)}"}),
        (f"{PATH}?token={SECRET}", {}),
    ):
        assert (await post(julia, path, headers=headers)).status_code == 200


async def test_no_other_credential_opens_the_webhook_not_even_loopback(julia: Julia) -> None:
    now = SystemClock().now()
    wrong: list[dict[str, str]] = [
        {},
        BEARER,
        {"X-Webhook-Secret": "outro"},
        {"Authorization": f"Bearer {jwt('outro', now)}"},
        {"Authorization": f"Bearer {jwt(SECRET, now, lives=-3600)}"},
        {"Authorization": f"Bearer {jwt(SECRET, now, alg='none')}"},
        {"Authorization": f"Bearer {jwt(SECRET, now, action='other')}"},
        {"Authorization": "Bearer a.b.c"},
        {"Authorization": "Bearer " + "a." * 10_000},
    ]
    for headers in wrong:
        answer = await post(julia, headers=headers)
        assert (answer.status_code, answer.json()["type"]) == (401, "/problemas/webhook_unproved")
    assert (await julia.ask("POST", PATH, json=delivery())).status_code == 401
    assert (await post(julia, f"{PATH}?token=")).status_code == 401
    assert await rows(julia.work.database, "SELECT id FROM webhook_inbox") == []


async def test_wrong_secret_is_limited_and_recorded_and_the_right_one_is_accepted(julia_url: str) -> None:
    opened = await open_julia(
        julia_url,
        APP_ENV="production",
        SECRET_KEY="s" * 32,
        WEBHOOK_SECRET=SECRET,
        **DESK,
        BATUTA_REFUSALS_PER_MINUTE="3",
    )
    opened.api.state.batuta.clients._clock = FakeClock()
    paths = {PATH: 401, "/webhook/chatwoot": 401, "/handoffs/confirmar": 404}
    wrong = {"X-Webhook-Secret": "outro", "Authorization": f"Bearer {jwt('outro', SystemClock().now())}"}
    right = [{"X-Webhook-Secret": SECRET}, {"Authorization": f"Bearer {jwt(SECRET, SystemClock().now())}"}]
    async with opened.work:
        for number, (path, status) in enumerate(paths.items()):
            async with opened.client(f"203.0.113.{number}", "http://api.exemplo.test") as client:
                answers = [await client.post(f"{path}?token=x", json=delivery(), headers=wrong) for _ in range(6)]
                assert [each.status_code for each in answers] == [status] * 3 + [429] * 3
                assert 1 <= int(answers[-1].headers["retry-after"]) <= 60
                # The right secret is accepted above the limit too: the gateway may share its address with an attacker.
                assert [(await client.post(PATH, json=delivery(), headers=each)).status_code for each in right] == [
                    200
                ] * 2
        await opened.api.state.batuta.clients.drain(timedelta())
        kept = await rows(opened.work.database, "SELECT actor, after FROM audit_log WHERE action = 'access.refused'")
    assert {each["actor"]: each["after"]["counts"] for each in kept} == {
        f"203.0.113.{number}": {str(status): 3, "429": 3} for number, status in enumerate(paths.values())
    }


async def test_webhook_secret_opens_nothing_else(julia: Julia) -> None:
    async with julia.client(ELSEWHERE, "http://api.exemplo.test") as client:
        answer = await client.post(f"/jobs/heartbeat?token={SECRET}", headers={"X-Webhook-Secret": SECRET})
        assert answer.status_code == 401
        assert (await client.get(PATH, headers={"X-Webhook-Secret": SECRET})).status_code == 405


@pytest.mark.parametrize(
    "body", [b"", b"nonsense", b"[]", b'{"event": 1}', b'{"event": "messages.upsert"}', b"[" * 50_000]
)
async def test_malformed_delivery_is_refused_without_a_retry(julia: Julia, body: bytes) -> None:
    answer = await post(julia, json=None, content=body, headers={"X-Webhook-Secret": SECRET})
    assert (answer.status_code, answer.json()["type"]) == (400, "/problemas/webhook_strange")


async def test_unwanted_event_is_answered_and_not_stored(julia: Julia) -> None:
    answer = await post(julia, json=delivery(event="presence.update"), headers={"X-Webhook-Secret": SECRET})
    assert answer.json() == {"status": "ignored", "event": "presence.update"}
    assert await rows(julia.work.database, "SELECT id FROM webhook_inbox") == []


async def test_delivery_over_the_limit_is_refused(julia: Julia) -> None:
    answer = await post(julia, json=delivery("x" * 2_000_000), headers={"X-Webhook-Secret": SECRET})
    assert answer.status_code == 413


async def test_webhook_without_a_secret_serves_loopback_and_asks_others_to_retry(julia_url: str) -> None:
    opened = await open_julia(julia_url)
    async with opened.work:
        assert (await opened.ask("POST", PATH, json=delivery())).status_code == 200
        answer = await post(opened)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "60")


async def test_worker_processes_a_delivery(julia: Julia) -> None:
    database = julia.work.database
    await add_doctor(database)
    await post(julia, headers={"X-Webhook-Secret": SECRET})
    stop = asyncio.Event()
    serving = asyncio.create_task(julia.work.supervisor().run(stop, timedelta(seconds=5)))
    await until(julia, "SELECT id FROM webhook_inbox WHERE status = 'processada'")
    stop.set()
    await serving
    assert (await one(database, "SELECT conteudo FROM interacoes"))["conteudo"] == "Olá"
    assert julia.work.queues["webhook_inbox"].name == "webhook_inbox"


async def until(julia: Julia, question: str) -> None:
    async with asyncio.timeout(60):
        while not await rows(julia.work.database, question):
            await SystemClock().sleep(0.05)


async def test_documented_call_of_the_groups_page_becomes_a_vacancy(
    julia_url: str,
) -> None:
    page = (ROOT / "docs/grupos.md").read_text(encoding="utf-8")
    words = shlex.split(page.partition("```sh\n")[2].partition("```")[0])
    headers = dict(words[n + 1].split(": ", 1) for n, word in enumerate(words) if word == "-H")
    opened = await open_julia(julia_url, WEBHOOK_SECRET=SIMULATED)
    async with opened.work as work:
        body = words[words.index("-d") + 1]
        answer = await opened.ask("POST", PATH, content=body.encode(), headers=headers)
        assert (words[:3], answer.json()) == (["curl", "-X", "POST"], {"status": "ok", "new": True})
        for queue in (WEBHOOK_INBOX.name, *Estagio):
            await work.work_once(queue, 100)
        assert [row["status"] for row in await rows(work.database, "SELECT status FROM vagas")] == ["aberta"]
    described = opened.api.openapi()["paths"][PATH]["post"]["requestBody"]["content"]["application/json"]
    assert described["example"] == json.loads(body)
