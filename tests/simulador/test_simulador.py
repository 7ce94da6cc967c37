"""The simulator's guarantees to clients that use it in place of the real services."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any

import httpx2
import pytest

from batuta.testing import FakeClock
from simulador.evolution.gateway import DEFAULT_INSTANCE, KEY
from simulador.evolution.vida import GROUPS
from simulador.main import create_app
from simulador.recebidos import KEPT

WITH_KEY = {"apikey": KEY}
NUMBER = "5511900000001"
SEND = f"/evolution/message/sendText/{DEFAULT_INSTANCE}"
LOOKUP = f"/evolution/chat/whatsappNumbers/{DEFAULT_INSTANCE}"
FIND = f"/evolution/chat/findMessages/{DEFAULT_INSTANCE}"
HOOK = {"enabled": True, "url": "http://127.0.0.1:8000/webhook/evolution"}


@pytest.fixture
async def world(clock: FakeClock) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=create_app(clock))
    async with httpx2.AsyncClient(transport=transport, base_url="http://simulador") as client:
        yield client


async def send(world: httpx2.AsyncClient, text: str = "Olá", number: str = NUMBER, **more: Any) -> httpx2.Response:
    return await world.post(SEND, headers=WITH_KEY, json={"number": number, "text": text, **more})


async def received(world: httpx2.AsyncClient, stand_in: str) -> list[dict[str, Any]]:
    by_stand_in: dict[str, list[dict[str, Any]]] = (await world.get("/recebidos")).json()
    return by_stand_in[stand_in]


def refusal(status: int, error: str, message: object) -> Mapping[str, object]:
    return {"status": status, "error": error, "response": {"message": message}}


# Index, health and received requests


async def test_index_names_every_simulated_service_with_a_description(world: httpx2.AsyncClient) -> None:
    index = (await world.get("/")).json()
    assert [(each["name"], each["path"]) for each in index] == [
        ("evolution", "/evolution"),
        ("slack", "/slack"),
        ("deadman", "/ping"),
        ("openai", "/openai"),
        ("chatwoot", "/chatwoot"),
        ("google", "/google"),
    ]
    assert all(each["line"] for each in index)


async def test_health_says_ok(world: httpx2.AsyncClient) -> None:
    answer = await world.get("/health")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def test_received_requests_are_listed_by_service_newest_last(world: httpx2.AsyncClient, clock: FakeClock) -> None:
    await send(world, "primeira")
    await clock.advance(60)
    await send(world, "segunda")
    await world.post("/slack/T/B/X", json={"text": "alerta"})
    everything = (await world.get("/recebidos")).json()
    assert {name: len(items) for name, items in everything.items()} == {
        "evolution": 2,
        "slack": 1,
        "deadman": 0,
        "openai": 0,
        "chatwoot": 0,
        "google": 0,
    }
    first, second = everything["evolution"]
    assert (first["text"], second["text"]) == ("primeira", "segunda")
    assert (datetime.fromisoformat(second["at"]) - datetime.fromisoformat(first["at"])).total_seconds() == 60


async def test_only_the_newest_thousand_of_each_are_kept(world: httpx2.AsyncClient) -> None:
    for _ in range(KEPT + 2):
        await world.get("/ping/batuta")
    kept = await received(world, "deadman")
    assert (KEPT, len(kept)) == (1_000, 1_000)
    assert (kept[0]["count"], kept[-1]["count"]) == (3, KEPT + 2)


async def test_received_requests_can_be_deleted(world: httpx2.AsyncClient) -> None:
    await send(world)
    await world.get("/ping/batuta")
    assert (await world.delete("/recebidos")).status_code == 204
    assert (await world.get("/recebidos")).json() == {
        "evolution": [], "slack": [], "deadman": [], "openai": [], "chatwoot": [], "google": [],
    }  # fmt: skip
    assert (await world.get("/ping/batuta")).json()["count"] == 1


async def test_every_simulator_starts_empty(world: httpx2.AsyncClient, clock: FakeClock) -> None:
    await send(world)
    transport = httpx2.ASGITransport(app=create_app(clock))
    async with httpx2.AsyncClient(transport=transport, base_url="http://simulador") as another:
        assert await received(another, "evolution") == []


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nada", 404), ("PUT", "/recebidos", 405), ("GET", "/slack/T/B/X", 405), ("PUT", "/ping/batuta", 405)],
)
async def test_errors_are_json(world: httpx2.AsyncClient, method: str, path: str, status: int) -> None:
    answer = await world.request(method, path)
    assert answer.status_code == answer.json()["status"] == status
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("path", ["/ping/batuta", SEND])
async def test_crash_is_answered_as_json(path: str) -> None:
    class Stopped(FakeClock):
        is_broken = False

        def now(self) -> datetime:
            if self.is_broken:
                raise RuntimeError("the clock stopped")
            return super().now()

    clock = Stopped()
    transport = httpx2.ASGITransport(app=create_app(clock), raise_app_exceptions=False)
    clock.is_broken = True
    async with httpx2.AsyncClient(transport=transport, base_url="http://simulador") as world:
        answer = await world.post(path, headers=WITH_KEY, json={"number": NUMBER, "text": "Olá"})
    assert answer.status_code == answer.json()["status"] == 500


# Evolution API: authentication


async def test_evolution_greets_without_a_key(world: httpx2.AsyncClient) -> None:
    answer = await world.get("/evolution/")
    assert answer.status_code == 200
    welcome = answer.json()
    assert (welcome["status"], welcome["version"]) == (200, "2.3.7")
    assert welcome["message"] == "Welcome to the Evolution API, it is working!"
    assert set(welcome) >= {"clientName", "manager", "documentation", "whatsappWebVersion"}


INSTANCE_CALLS = [
    ("GET", "instance/connectionState"),
    ("POST", "message/sendText"),
    ("POST", "chat/whatsappNumbers"),
    ("POST", "chat/findMessages"),
    ("POST", "webhook/set"),
    ("GET", "webhook/find"),
]


@pytest.mark.parametrize(("method", "call"), INSTANCE_CALLS)
async def test_unknown_instance_is_404_even_without_a_key(world: httpx2.AsyncClient, method: str, call: str) -> None:
    answer = await world.request(method, f"/evolution/{call}/ninguem")
    assert answer.status_code == 404
    assert answer.json() == refusal(404, "Not Found", ['The "ninguem" instance does not exist'])


@pytest.mark.parametrize("headers", [{}, {"apikey": "errada"}])
@pytest.mark.parametrize(("method", "call"), INSTANCE_CALLS)
async def test_known_instance_without_the_right_key_is_401(
    world: httpx2.AsyncClient, method: str, call: str, headers: dict[str, str]
) -> None:
    answer = await world.request(method, f"/evolution/{call}/{DEFAULT_INSTANCE}", headers=headers)
    assert answer.status_code == 401
    assert answer.json() == refusal(401, "Unauthorized", "Unauthorized")


@pytest.mark.parametrize(("method", "path"), [("GET", "instance/fetchInstances"), ("POST", "instance/create")])
async def test_calls_without_an_instance_need_the_key(world: httpx2.AsyncClient, method: str, path: str) -> None:
    answer = await world.request(method, f"/evolution/{path}", headers={"apikey": "errada"})
    assert (answer.status_code, answer.json()) == (401, refusal(401, "Unauthorized", "Unauthorized"))


async def test_instance_token_opens_only_that_instance(world: httpx2.AsyncClient) -> None:
    created = await create(world, "chip-2", token="so-do-chip-2")
    token = {"apikey": created.json()["hash"]}
    assert token == {"apikey": "so-do-chip-2"}
    assert (await world.get("/evolution/instance/connectionState/chip-2", headers=token)).status_code == 200
    assert (await world.post(SEND, headers=token, json={})).status_code == 401
    listed = await world.get(f"/evolution/instance/fetchInstances?instanceName={DEFAULT_INSTANCE}", headers=token)
    assert [row["name"] for row in listed.json()] == ["chip-2"]


@pytest.mark.parametrize(("method", "path"), [("GET", "/nada"), ("GET", "/message/sendText/julia-sim"), ("PUT", "/")])
async def test_unknown_route_is_404_and_named(world: httpx2.AsyncClient, method: str, path: str) -> None:
    answer = await world.request(method, f"/evolution{path}", headers=WITH_KEY)
    assert answer.status_code == 404
    assert answer.json() == refusal(404, "Not Found", [f"Cannot {method} {path}"])


# Evolution API: instances


async def create(world: httpx2.AsyncClient, name: str, **more: Any) -> httpx2.Response:
    body = {"instanceName": name, "integration": "WHATSAPP-BAILEYS", **more}
    return await world.post("/evolution/instance/create", headers=WITH_KEY, json=body)


async def test_default_instance_exists_and_is_open(world: httpx2.AsyncClient) -> None:
    state = await world.get(f"/evolution/instance/connectionState/{DEFAULT_INSTANCE}", headers=WITH_KEY)
    assert (state.status_code, state.json()) == (200, {"instance": {"instanceName": "julia-sim", "state": "open"}})
    [row] = (await world.get("/evolution/instance/fetchInstances", headers=WITH_KEY)).json()
    assert (row["name"], row["connectionStatus"], row["ownerJid"]) == (
        "julia-sim",
        "open",
        "5511900000000@s.whatsapp.net",
    )
    assert row["_count"] == {"Message": 0, "Contact": 0, "Chat": 0}


async def test_created_instance_is_listed_and_stays_closed(world: httpx2.AsyncClient) -> None:
    answer = await create(world, "chip-2", number="5511900000002", webhook={"url": HOOK["url"]}, groupsIgnore=True)
    assert answer.status_code == 201
    created = answer.json()
    assert (created["instance"]["instanceName"], created["instance"]["status"]) == ("chip-2", "close")
    assert created["hash"]
    assert created["webhook"]["webhookUrl"] == HOOK["url"]
    assert created["settings"]["groupsIgnore"] is True
    by_number = await world.get("/evolution/instance/fetchInstances?number=5511900000002", headers=WITH_KEY)
    [row] = by_number.json()
    assert (row["name"], row["connectionStatus"]) == ("chip-2", "close")
    assert row["id"] == created["instance"]["instanceId"]


async def test_taken_name_is_403_before_the_key_is_checked(world: httpx2.AsyncClient) -> None:
    answer = await world.post("/evolution/instance/create", json={"instanceName": DEFAULT_INSTANCE})
    assert answer.status_code == 403
    assert answer.json() == refusal(403, "Forbidden", ['This name "julia-sim" is already in use.'])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, [['instance requires property "instanceName"']]),
        ({"instanceName": ""}, [['The "instanceName" cannot be empty']]),
        ({"instanceName": ["chip-2"]}, [["instanceName is not of a type(s) string"]]),
        ({"instanceName": "chip-2"}, ["Invalid integration"]),
        ({"instanceName": "chip-2", "integration": "POMBO-CORREIO"}, ["Invalid integration"]),
    ],
)
async def test_invalid_instance_is_not_created(
    world: httpx2.AsyncClient, body: dict[str, object], message: object
) -> None:
    answer = await world.post("/evolution/instance/create", headers=WITH_KEY, json=body)
    assert (answer.status_code, answer.json()) == (400, refusal(400, "Bad Request", message))
    assert len((await world.get("/evolution/instance/fetchInstances", headers=WITH_KEY)).json()) == 1


async def test_query_for_a_missing_instance_is_404(world: httpx2.AsyncClient) -> None:
    answer = await world.get("/evolution/instance/fetchInstances?instanceName=ninguem", headers=WITH_KEY)
    assert (answer.status_code, answer.json()) == (404, refusal(404, "Not Found", ['Instance "ninguem" not found']))


# Evolution API: messages


async def test_accepted_message_is_pending_and_recorded(world: httpx2.AsyncClient, clock: FakeClock) -> None:
    answer = await send(world, "Olá, doutora", "+55 (11) 90000-0001")
    assert answer.status_code == 201
    message = answer.json()
    assert (message["status"], message["messageType"]) == ("PENDING", "conversation")
    assert message["message"] == {"conversation": "Olá, doutora"}
    assert message["messageTimestamp"] == int(clock.now().timestamp())
    assert (message["key"]["remoteJid"], message["key"]["fromMe"]) == ("5511900000001@s.whatsapp.net", True)
    assert await received(world, "evolution") == [
        {
            "at": clock.now().isoformat(),
            "instance": "julia-sim",
            "number": "+55 (11) 90000-0001",
            "text": "Olá, doutora",
            "message": message,
        }
    ]


async def test_no_two_messages_share_an_id(world: httpx2.AsyncClient) -> None:
    answers = [await send(world) for _ in range(50)]
    assert len({answer.json()["key"]["id"] for answer in answers}) == 50


@pytest.mark.parametrize(
    ("number", "jid"),
    [
        ("5511900000001", "5511900000001@s.whatsapp.net"),
        ("5531980000001", "553180000001@s.whatsapp.net"),
        ("5531960000001", "5531960000001@s.whatsapp.net"),
        ("553180000001", "553180000001@s.whatsapp.net"),
        ("120363000000000001", "120363000000000001@g.us"),
        ("120363000000000001@g.us", "120363000000000001@g.us"),
        ("900000000001@lid", "900000000001@lid"),
    ],
)
async def test_answer_has_the_address_that_whatsapp_registered(
    world: httpx2.AsyncClient, number: str, jid: str
) -> None:
    assert (await send(world, number=number)).json()["key"]["remoteJid"] == jid


async def test_answer_is_delayed_as_requested(world: httpx2.AsyncClient, clock: FakeClock) -> None:
    sending = asyncio.create_task(send(world, delay=1200))
    await clock.advance(1.1)
    assert not sending.done()
    assert await received(world, "evolution") == []
    await clock.advance(0.2)
    assert (await sending).status_code == 201
    assert len(await received(world, "evolution")) == 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"number": NUMBER}, [['instance requires property "text"']]),
        ({}, [['instance requires property "number"', 'instance requires property "text"']]),
        ({"number": NUMBER, "textMessage": {"text": "Olá"}}, [['instance requires property "text"']]),
        ({"number": 5511900000001, "text": "Olá"}, [["Invalid format"]]),
        ({"number": NUMBER, "text": 1}, [["text is not of a type(s) string"]]),
        ({"number": NUMBER, "text": "Olá", "delay": "1200"}, [["Enter a value in milliseconds"]]),
        ({"number": NUMBER, "text": "Olá", "quoted": {"key": {}}}, [['quoted.key requires property "id"']]),
        ({"number": NUMBER, "text": "Olá", "mentioned": []}, [["mentioned does not meet minimum length of 1"]]),
        ({"number": NUMBER, "text": ""}, ["Text is required"]),
        ({"number": NUMBER, "text": " \n"}, ["Text is required"]),
        ({"number": "123", "text": "Olá"}, [{"jid": "123@s.whatsapp.net", "exists": False, "number": "123"}]),
    ],
)
async def test_invalid_message_is_400_and_not_recorded(
    world: httpx2.AsyncClient, body: dict[str, object], message: object
) -> None:
    answer = await world.post(SEND, headers=WITH_KEY, json=body)
    assert (answer.status_code, answer.json()) == (400, refusal(400, "Bad Request", message))
    assert await received(world, "evolution") == []


@pytest.mark.parametrize("content", [b"{", b"[]", b'"texto"', b"\xff", b'{"text": NaN}', b"[" * 100_000])
async def test_body_that_is_not_an_object_is_400(world: httpx2.AsyncClient, content: bytes) -> None:
    answer = await world.post(SEND, headers=WITH_KEY, content=content)
    assert (answer.status_code, answer.json()) == (
        400,
        refusal(400, "Bad Request", ["The body is not a JSON object"]),
    )


async def test_closed_instance_cannot_send(world: httpx2.AsyncClient) -> None:
    await create(world, "chip-2")
    body = {"number": NUMBER, "text": "Olá"}
    answer = await world.post("/evolution/message/sendText/chip-2", headers=WITH_KEY, json=body)
    assert (answer.status_code, answer.json()) == (500, refusal(500, "Internal Server Error", "Connection Closed"))
    assert await received(world, "evolution") == []


async def test_lookup_answers_groups_before_people(world: httpx2.AsyncClient) -> None:
    asked = {"numbers": ["123", NUMBER, "120363000000000001@g.us", "lista@broadcast"]}
    answer = await world.post(LOOKUP, headers=WITH_KEY, json=asked)
    assert answer.status_code == 200
    assert answer.json() == [
        {"jid": "lista@broadcast", "exists": True, "number": "lista@broadcast"},
        {"jid": "120363000000000001@g.us", "exists": True, "number": "120363000000000001@g.us"},
        {"jid": "123@s.whatsapp.net", "exists": False, "number": "123"},
        {"jid": "5511900000001@s.whatsapp.net", "exists": True, "number": NUMBER},
    ]


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({}, 'instance requires property "numbers"'),
        ({"numbers": []}, "numbers does not meet minimum length of 1"),
        ({"numbers": [NUMBER, NUMBER]}, "numbers contains duplicate item"),
        ({"numbers": [1]}, '"numbers" must be an array of numeric strings'),
    ],
)
async def test_invalid_lookup_is_400_without_the_envelope(
    world: httpx2.AsyncClient, body: dict[str, object], wrong: str
) -> None:
    answer = await world.post(LOOKUP, headers=WITH_KEY, json=body)
    assert answer.status_code == 400
    assert answer.json() == {"status": 400, "error": "Bad Request", "message": [[wrong]]}


async def test_sent_messages_can_be_found_newest_first(world: httpx2.AsyncClient) -> None:
    first, second = (await send(world, "primeira")).json(), (await send(world, "segunda")).json()
    answer = await world.post(FIND, headers=WITH_KEY)
    assert answer.status_code == 200
    found = answer.json()["messages"]
    assert (found["total"], found["pages"], found["currentPage"]) == (2, 1, 1)
    assert [record["key"] for record in found["records"]] == [second["key"], first["key"]]
    assert found["records"][0]["message"] == {"conversation": "segunda"}


async def test_message_can_be_found_by_its_key(world: httpx2.AsyncClient) -> None:
    wanted = (await send(world)).json()["key"]
    other = (await send(world, number="5511900000002")).json()["key"]
    for key in ({"id": wanted["id"]}, {"remoteJid": wanted["remoteJid"], "fromMe": True}):
        found = (await world.post(FIND, headers=WITH_KEY, json={"where": {"key": key}})).json()["messages"]
        assert [record["key"] for record in found["records"]] == [wanted]
    both = {"where": {"key": {"id": wanted["id"], "remoteJid": other["remoteJid"]}}}
    assert (await world.post(FIND, headers=WITH_KEY, json=both)).json()["messages"]["total"] == 0


async def test_group_is_found_by_its_address_and_an_unknown_one_is_404(world: httpx2.AsyncClient) -> None:
    path = f"/evolution/group/findGroupInfos/{DEFAULT_INSTANCE}"
    found = await world.get(path, headers=WITH_KEY, params={"groupJid": GROUPS[0]})
    assert (found.status_code, found.json()["id"]) == (200, GROUPS[0])
    assert found.json()["subject"] == "[SIMULADO] Plantões Salvador"
    assert (await world.get(path, headers=WITH_KEY, params={"groupJid": "1@g.us"})).status_code == 404
    assert (await world.get(path, headers=WITH_KEY)).status_code == 400


async def test_found_messages_come_in_pages(world: httpx2.AsyncClient) -> None:
    for number in range(5):
        await send(world, f"mensagem {number}")
    answer = await world.post(FIND, headers=WITH_KEY, json={"page": 3, "offset": 2})
    found = answer.json()["messages"]
    assert (found["total"], found["pages"], found["currentPage"]) == (5, 3, 3)
    assert [record["message"]["conversation"] for record in found["records"]] == ["mensagem 0"]


async def test_deleting_received_requests_keeps_the_sent_messages(world: httpx2.AsyncClient) -> None:
    await send(world)
    await world.delete("/recebidos")
    assert (await world.post(FIND, headers=WITH_KEY)).json()["messages"]["total"] == 1


# Evolution API: webhooks


async def set_webhook(world: httpx2.AsyncClient, body: object) -> httpx2.Response:
    return await world.post(f"/evolution/webhook/set/{DEFAULT_INSTANCE}", headers=WITH_KEY, json=body)


async def find_webhook(world: httpx2.AsyncClient) -> Any:
    return (await world.get(f"/evolution/webhook/find/{DEFAULT_INSTANCE}", headers=WITH_KEY)).json()


async def test_webhook_is_null_until_it_is_set(world: httpx2.AsyncClient) -> None:
    assert await find_webhook(world) is None


async def test_configured_webhook_is_found(world: httpx2.AsyncClient) -> None:
    wanted = {**HOOK, "byEvents": True, "headers": {"x-origem": "simulador"}, "events": ["MESSAGES_UPSERT"]}
    answer = await set_webhook(world, {"webhook": wanted})
    assert answer.status_code == 201
    row = answer.json()
    assert (row["url"], row["enabled"], row["webhookByEvents"]) == (HOOK["url"], True, True)
    assert (row["headers"], row["events"]) == ({"x-origem": "simulador"}, ["MESSAGES_UPSERT"])
    assert await find_webhook(world) == row


async def test_setting_a_webhook_again_changes_the_same_row(world: httpx2.AsyncClient, clock: FakeClock) -> None:
    before = (await set_webhook(world, {"webhook": HOOK})).json()
    await clock.advance(60)
    after = (await set_webhook(world, {"webhook": {**HOOK, "base64": True}})).json()
    assert (after["id"], after["createdAt"]) == (before["id"], before["createdAt"])
    assert after["updatedAt"] > before["updatedAt"]


async def test_webhook_without_events_gets_all_and_a_disabled_one_none(world: httpx2.AsyncClient) -> None:
    every = (await set_webhook(world, {"webhook": {**HOOK, "events": []}})).json()["events"]
    assert {"MESSAGES_UPSERT", "MESSAGES_UPDATE", "CONNECTION_UPDATE", "SEND_MESSAGE"} <= set(every)
    assert (await set_webhook(world, {"webhook": {**HOOK, "enabled": False}})).json()["events"] == []


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (HOOK, [['instance requires property "webhook"']]),
        ({"webhook": {"enabled": True}}, [['webhook requires property "url"']]),
        ({"webhook": {"enabled": "sim", "url": HOOK["url"]}}, [["webhook.enabled is not of a type(s) boolean"]]),
        ({"webhook": {"enabled": True, "url": "julia"}}, ['Invalid "url" property']),
    ],
)
async def test_invalid_webhook_is_400(world: httpx2.AsyncClient, body: dict[str, object], message: object) -> None:
    answer = await set_webhook(world, body)
    assert (answer.status_code, answer.json()) == (400, refusal(400, "Bad Request", message))
    assert await find_webhook(world) is None


async def test_webhook_cannot_subscribe_to_an_unknown_event(world: httpx2.AsyncClient) -> None:
    answer = await set_webhook(world, {"webhook": {**HOOK, "events": ["messages.upsert"]}})
    assert answer.status_code == 400
    [[sentence]] = answer.json()["response"]["message"]
    assert sentence.startswith("webhook.events[0] is not one of enum values: ")


# Slack


@pytest.mark.parametrize("payload", [{"text": "alerta"}, {"blocks": []}, {"attachments": [{"text": "alerta"}]}])
async def test_slack_answers_ok_and_keeps_the_payload(
    world: httpx2.AsyncClient, clock: FakeClock, payload: dict[str, object]
) -> None:
    answer = await world.post("/slack/services/T/B/X", json=payload)
    assert (answer.status_code, answer.text) == (200, "ok")
    assert answer.headers["content-type"].startswith("text/plain")
    assert await received(world, "slack") == [
        {"at": clock.now().isoformat(), "webhook": "services/T/B/X", "payload": payload}
    ]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'"alerta"', b"payload={}", b'{"text": "\\ud800"}'])
async def test_slack_refuses_an_invalid_payload(world: httpx2.AsyncClient, content: bytes) -> None:
    answer = await world.post("/slack/services/T/B/X", content=content)
    assert (answer.status_code, answer.text) == (400, "invalid_payload")
    assert await received(world, "slack") == []


async def test_slack_refuses_a_payload_without_a_text(world: httpx2.AsyncClient) -> None:
    answer = await world.post("/slack/services/T/B/X", json={"canal": "#alertas"})
    assert (answer.status_code, answer.text) == (400, "no_text")
    assert await received(world, "slack") == []


# The dead man's switch


async def test_pings_are_counted_by_name_with_their_times(world: httpx2.AsyncClient, clock: FakeClock) -> None:
    for method in ("GET", "POST", "HEAD"):
        assert (await world.request(method, "/ping/batuta")).status_code == 200
        await clock.advance(60)
    assert (await world.get("/ping/outro")).json() == {"name": "outro", "count": 1}
    pings = await received(world, "deadman")
    assert [(ping["name"], ping["method"], ping["count"]) for ping in pings] == [
        ("batuta", "GET", 1),
        ("batuta", "POST", 2),
        ("batuta", "HEAD", 3),
        ("outro", "GET", 1),
    ]
    first, second = (datetime.fromisoformat(ping["at"]) for ping in pings[:2])
    assert (second - first).total_seconds() == 60
