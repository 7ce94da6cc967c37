"""The simulated Telegram's guarantees to the tests and developers that use it. ``tests/julia/telegram`` tests it
through its client.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from batuta.testing import FakeClock
from simulador.telegram.api import create_app
from simulador.telegram.mundo import Mundo

CONTROL = "/controle/telegram"


@pytest.fixture
async def world(clock: FakeClock) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=create_app(clock))
    async with httpx2.AsyncClient(transport=transport, base_url="http://simulador") as client:
        yield client


async def account(world: httpx2.AsyncClient, **more: Any) -> Any:
    return (await world.post(f"{CONTROL}/contas", json={"nome": "Conta", "telefone": "5511900000001", **more})).json()


async def call(world: httpx2.AsyncClient, sessao: str, metodo: str, **body: Any) -> httpx2.Response:
    return await world.post(f"/telegram/{metodo}", json=body, headers={"Authorization": f"Bearer {sessao}"})


def test_a_new_process_continues_with_every_message_of_the_killed_one(
    clock: FakeClock, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    journal = tmp_path / "journal"
    first = Mundo(clock, journal=journal)
    # The file is always closed. A killed process would not flush it either.
    request.addfinalizer(first.close)
    me, other = first.add_person("Conta"), first.add_person("Pessoa")
    session = first.open_session(me)
    chat, access = f"pessoa:{other}", first.hash_for(me, f"pessoa:{other}")
    sent = first.send(me, chat, access, "Olá", random_id=7)
    first.says(other, me, "Oi")
    second = Mundo(clock, journal=journal)
    request.addfinalizer(second.close)
    assert second.account(session) == me
    assert second.receipts == first.receipts
    assert second.pts(me) == first.pts(me)
    assert second.send(me, chat, access, "Olá", random_id=7) == sent  # the second process knows the random_id
    assert len(second.receipts) == 1


async def test_receipts_tell_which_account_sent_which_message(world: httpx2.AsyncClient) -> None:
    made = await account(world)
    person = (await world.post(f"{CONTROL}/pessoas", json={"nome": "Pessoa", "username": "pessoa"})).json()["id"]
    found = (await call(world, made["sessao"], "resolve", destino="@pessoa")).json()["result"]
    for n in (1, 2):
        await call(
            world,
            made["sessao"],
            "send_text",
            chat=f"pessoa:{person}",
            acesso=found["acesso"],
            texto=f"m{n}",
            random_id=n,
        )
    receipts = (await world.get(f"{CONTROL}/recibos")).json()
    assert [(each["conta"], each["texto"], each["random_id"]) for each in receipts] == [
        (made["id"], "m1", 1),
        (made["id"], "m2", 2),
    ]
    assert [each["n"] for each in (await world.get(f"{CONTROL}/recibos?depois=1")).json()] == [2]


async def test_behaviour_changes_for_all_accounts_or_for_one(world: httpx2.AsyncClient) -> None:
    one, two = await account(world), await account(world, telefone="5511900000002")
    await world.patch(f"{CONTROL}/contas/{one['id']}", json={"flood_wait": 30})
    limited = await call(world, one["sessao"], "connect")
    assert (limited.status_code, limited.json()) == (420, {"error": "FLOOD_WAIT_30", "code": 420})
    assert (await call(world, one["sessao"], "connect")).status_code == 420
    assert (await call(world, two["sessao"], "connect")).status_code == 200
    shown = (await world.get(CONTROL + "/")).json()
    assert (shown["chamadas_durante_flood"], shown["flood_wait"]) == (1, 0)
    await world.delete(CONTROL + "/")
    assert (await call(world, one["sessao"], "connect")).status_code == 200


async def test_an_unknown_setting_names_the_known_ones(world: httpx2.AsyncClient) -> None:
    answer = await world.patch(f"{CONTROL}/", json={"lost_answer": 1})
    assert answer.status_code == 400
    assert "lost_answers" in answer.json()["title"]


async def test_a_person_logs_in_with_code_and_password(world: httpx2.AsyncClient) -> None:
    phone = {"telefone": "+5511900000001"}
    await account(world, senha="synthetic", sessao=False)
    assert (await world.post("/telegram/auth/code", json=phone)).status_code == 200
    wrong = await world.post("/telegram/auth/sign_in", json=phone | {"codigo": "00000"})
    assert wrong.json()["error"] == "PHONE_CODE_INVALID"
    needs = await world.post("/telegram/auth/sign_in", json=phone | {"codigo": "12345"})
    assert needs.json()["error"] == "SESSION_PASSWORD_NEEDED"
    refused = await world.post("/telegram/auth/password", json=phone | {"senha": "other"})
    assert refused.json()["error"] == "PASSWORD_HASH_INVALID"
    done = (await world.post("/telegram/auth/password", json=phone | {"senha": "synthetic"})).json()
    assert (await call(world, done["sessao"], "connect")).status_code == 200
    assert "synthetic" not in (await world.get("/recebidos")).text


async def test_a_revoked_session_is_refused(world: httpx2.AsyncClient) -> None:
    made = await account(world)
    await world.post(f"{CONTROL}/contas/{made['id']}/revogar", json={})
    answer = await call(world, made["sessao"], "connect")
    assert (answer.status_code, answer.json()["error"]) == (401, "AUTH_KEY_UNREGISTERED")


async def test_a_poll_whose_client_left_ends_and_keeps_the_updates(world: httpx2.AsyncClient, clock: FakeClock) -> None:
    made = await account(world)
    conexao = (await call(world, made["sessao"], "connect")).json()["result"]["conexao"]
    app = world._transport.app  # type: ignore[attr-defined]
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/telegram/updates",
        "root_path": "",
        "query_string": f"conexao={conexao}&espera=60".encode(),
        "headers": [(b"authorization", f"Bearer {made['sessao']}".encode())],
    }
    events = iter(({"type": "http.request", "body": b"", "more_body": False}, {"type": "http.disconnect"}))

    async def receive() -> dict[str, Any]:
        return next(events)

    async def send(message: dict[str, Any]) -> None:
        """Drop the answer, because the client has left."""

    async with asyncio.timeout(20):
        await app(scope, receive, send)
    person = (await world.post(f"{CONTROL}/pessoas", json={"nome": "Pessoa"})).json()["id"]
    await world.post(f"{CONTROL}/mensagens", json={"de": person, "conta": made["id"], "texto": "Oi"})
    headers = {"Authorization": f"Bearer {made['sessao']}"}
    polled = await world.get("/telegram/updates", params={"conexao": conexao, "espera": "0"}, headers=headers)
    assert len(polled.json()["result"]) == 1
