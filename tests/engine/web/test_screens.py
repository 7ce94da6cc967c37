"""Screens and actions that an application adds. Users see only those that their scope permits; each action has a
preview, is performed once, and is audited.
"""

import html
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI

from batuta.access import Scope, mint
from batuta.config import EngineSettings, load_settings
from batuta.engine.batuta import Batuta
from batuta.errors import ActionRefused
from batuta.extension import (
    Action,
    ActionCall,
    ActionResult,
    Extension,
    Field,
    FieldKind,
    Preview,
    Screen,
    Visit,
)
from batuta.stores.sql.queries import query_of
from batuta.testing import FakeClock
from batuta.web import create_api
from batuta.web.forms import _multipart

SECRETS = {"API_TOKEN": "t" * 40, "SECRET_KEY": "s" * 40, "APP_ENV": "production", "BATUTA_HTTPS": "false"}
TEXTS = """
[printers]
title = "Printers"
pause = "Pause printer"
will = "{printer} prints nothing, and {waiting} sheets wait."
done = "{printer} is paused."
reason = "Reason"
"""
TEMPLATE = """{% extends "panel/base.html.j2" %}
{% block main %}
<h1>{{ title }}</h1>
<p id="owner" data-live>{{ owner if revealed else "hidden" }}</p>
{{ revealing() }}
{{ act.link("printer.pause", printer="laser") }}
{{ act.form("printer.pause", printer="laser") }}
{% endblock %}
"""
ENTRIES = query_of("entries", "SELECT actor, action, subject, after FROM audit_log ORDER BY at, id", writes=False)


@dataclass
class Program:
    work: Batuta
    api: FastAPI
    paused: list[dict[str, str]] = field(default_factory=list)

    async def client(self, *scopes: Scope) -> httpx2.AsyncClient:
        """Return a browser that is signed in with a token that has these scopes."""
        now = self.work.clock.now()
        token, text = mint("ana", scopes, by="test", now=now, chance=lambda n: "ab" * n)
        await self.work.tokens.keep(token)
        transport = httpx2.ASGITransport(app=self.api, client=("10.0.0.1", 5000))
        client = httpx2.AsyncClient(transport=transport, base_url="http://batuta.test", headers={"Accept": "text/html"})
        answer = await client.post("/ops/entrar", data={"token": text})
        assert answer.status_code == 303
        return client


@pytest.fixture
async def program(tmp_path: Path, work_url: str) -> AsyncIterator[Program]:
    (tmp_path / "texts").mkdir()
    for language in ("en", "pt_BR"):
        (tmp_path / "texts" / f"{language}.toml").write_text(TEXTS)
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "printers.html.j2").write_text(TEMPLATE)
    paused: list[dict[str, str]] = []

    async def read(visit: Visit) -> dict[str, object]:
        return {"owner": "Fulana de Teste", "revealed": await visit.reveal(1)}

    async def preview(call: ActionCall) -> Preview:
        if call.values["printer"] != "laser":
            raise ActionRefused(why=f"there is no printer {call.values['printer']}: choose laser")
        return Preview(says="printers.will", facts={"printer": "laser", "waiting": 3}, items=3)

    async def perform(call: ActionCall) -> ActionResult:
        paused.append(dict(call.values))
        return ActionResult(says="printers.done", facts={"printer": call.values["printer"]})

    extension = Extension(
        texts=[tmp_path / "texts"],
        templates=[tmp_path / "templates"],
        screens=[
            Screen(path="/printers", title="printers.title", template="printers.html.j2", read=read),
            Screen(path="/secrets", title="printers.title", template="printers.html.j2", read=read, scope=Scope.PII),
        ],
        actions=[
            Action(
                name="printer.pause",
                label="printers.pause",
                preview=preview,
                perform=perform,
                fields=[
                    Field(name="printer", kind=FieldKind.HIDDEN, required=True),
                    Field(name="reason", label="printers.reason", required=True),
                ],
                command=lambda values: ["printer", "pause", values["printer"], "--reason", values["reason"]],
            )
        ],
    )
    work = Batuta(work_url, clock=FakeClock(), extension=extension)
    settings = load_settings(EngineSettings, {"DATABASE_URL": work_url, "BATUTA_PANEL_PREFIX": "/ops", **SECRETS})
    async with work:
        yield Program(work, create_api(work, settings), paused)


def proof_in(page: str) -> str:
    found = re.search(r'name="csrf" value="(\w+)"', page)
    assert found
    return found[1]


async def entries(work: Batuta, action: str) -> list[tuple[str, str]]:
    return [(row["actor"], row["subject"]) for row in await work.database.all(ENTRIES) if row["action"] == action]


async def test_a_screen_of_the_application_is_in_the_navigation_of_every_page(program: Program) -> None:
    client = await program.client(Scope.READ)
    page = (await client.get("/ops/execucoes")).text
    assert '<a href="/ops/printers">Printers</a>' in page
    assert '<a href="/ops/printers" aria-current="page">Printers</a>' in (await client.get("/ops/printers")).text


async def test_a_reader_sees_neither_the_screens_nor_the_actions_of_other_scopes(program: Program) -> None:
    client = await program.client(Scope.READ)
    page = (await client.get("/ops/printers")).text
    assert "/ops/secrets" not in page
    assert "Pause printer" not in page
    assert (await client.get("/ops/secrets")).status_code == 403
    assert (await client.get("/ops/acoes/printer.pause?printer=laser")).status_code == 403
    refused = await client.post("/ops/acoes/printer.pause", data={"printer": "laser", "csrf": proof_in(page)})
    assert refused.status_code == 403
    assert program.paused == []


async def test_an_action_says_what_it_will_do_and_reports_what_it_did(program: Program) -> None:
    client = await program.client(Scope.OPERATE)
    screen = (await client.get("/ops/printers")).text
    link = html.unescape(re.search(r'href="([^"]+)" data-action', screen)[1])  # type: ignore[index]
    form = (await client.get(link)).text
    assert "laser prints nothing, and 3 sheets wait." in form
    assert "batuta printer pause laser" in form
    assert program.paused == []
    data = {"printer": "laser", "reason": "no paper", "voltar": "/ops/printers", "csrf": proof_in(form)}
    done = await client.post("/ops/acoes/printer.pause", data=data)
    assert (done.status_code, done.headers["location"]) == (303, "/ops/printers")
    after = (await client.get("/ops/printers")).text
    assert "laser is paused." in after
    assert "batuta printer pause laser --reason &#39;no paper&#39;" in after
    assert "laser is paused." not in (await client.get("/ops/printers")).text
    assert program.paused == [{"printer": "laser", "reason": "no paper"}]
    assert await entries(program.work, "printer.pause") == [("token ana", "laser")]


async def test_bad_input_returns_to_the_form_and_changes_nothing(program: Program) -> None:
    client = await program.client(Scope.OPERATE)
    proof = proof_in((await client.get("/ops/acoes/printer.pause?printer=laser")).text)
    missing = await client.post("/ops/acoes/printer.pause", data={"printer": "laser", "csrf": proof})
    assert missing.status_code == 422
    assert "preencha o campo “Reason”" in missing.text
    unknown = await client.get("/ops/acoes/printer.pause?printer=ink")
    assert unknown.status_code == 422
    assert "there is no printer ink: choose laser" in unknown.text
    assert program.paused == []
    assert await entries(program.work, "printer.pause") == []


async def test_an_action_without_the_csrf_token_or_to_another_site_is_refused(program: Program) -> None:
    client = await program.client(Scope.OPERATE)
    data = {"printer": "laser", "reason": "x"}
    assert (await client.post("/ops/acoes/printer.pause", data=data)).status_code == 403
    assert program.paused == []
    proof = proof_in((await client.get("/ops/acoes/printer.pause?printer=laser")).text)
    away = {**data, "voltar": "//evil.test/ops", "csrf": proof}
    assert (await client.post("/ops/acoes/printer.pause", data=away)).headers["location"] == "/ops"


async def test_personal_data_stays_hidden_without_the_scope(program: Program) -> None:
    reader = await program.client(Scope.READ)
    page = (await reader.get("/ops/printers?mostrar=dados")).text
    assert "Fulana" not in page
    assert "Mostrar dados" not in page


async def test_a_holder_of_the_scope_pii_reveals_and_leaves_an_entry(program: Program) -> None:
    client = await program.client(Scope.PII)
    assert "Fulana" not in (await client.get("/ops/printers")).text
    assert await entries(program.work, "access.unmask") == []
    assert "Fulana de Teste" in (await client.get("/ops/printers?mostrar=dados")).text
    assert len(await entries(program.work, "access.unmask")) == 1


async def test_a_program_gets_the_result_of_an_action_as_json(program: Program) -> None:
    client = await program.client(Scope.OPERATE)
    proof = proof_in((await client.get("/ops/acoes/printer.pause?printer=laser")).text)
    data, headers = {"printer": "laser", "reason": "x"}, {"Accept": "application/json", "x-csrf-token": proof}
    done = await client.post("/ops/acoes/printer.pause", data=data, headers=headers)
    assert done.json()["done"] == "laser is paused."
    wrong = await client.post("/ops/acoes/printer.pause", data={"printer": "laser"}, headers=headers)
    assert (wrong.status_code, wrong.json()) == (422, {"refused": "preencha o campo “Reason”"})


def test_an_uploaded_file_arrives_byte_by_byte() -> None:
    content = bytes(range(256)) * 3 + b"\r\n--not the end\r\n"
    body = (
        b'--b\r\nContent-Disposition: form-data; name="csrf"\r\n\r\nab\r\n'
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="x.xlsx"\r\nContent-Type: a/b\r\n\r\n'
        + content
        + b"\r\n--b--\r\n"
    )
    form = _multipart(body, b"b")
    assert form.get("csrf") == "ab"
    assert form.files == {"file": content}
