"""Exporting one person's data, and the export requests over HTTP and in the terminal."""

import asyncio
import json
import secrets
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.main import build
from app.settings import Settings
from batuta.access import Scope, mint
from batuta.engine.batuta import Batuta
from batuta.testing import FakeClock
from tests.command import Command
from tests.julia.lgpd.pessoas import Pessoa, add_everywhere, add_shift, lgpd_of
from tests.julia.tables import one, rows, write
from tests.julia.web.test_api import BEARER, Julia, open_julia

LGPD = "/api/v1/lgpd"
JULIA = ("--app", "app.main:work", "--lang", "pt-BR")


@pytest.fixture
async def work(database_url: str, clock: FakeClock) -> AsyncIterator[Batuta]:
    async with build(Settings(database_url=database_url), clock=clock).work as work:
        yield work


@pytest.fixture
async def julia(database_url: str) -> AsyncIterator[Julia]:
    opened = await open_julia(database_url)
    yield opened
    await opened.work.close()


async def test_export_has_every_table_of_the_person_and_nothing_of_others(work: Batuta) -> None:
    ana, bia = await add_everywhere(work, 1), await add_everywhere(work, 2)
    await add_shift(work, ana, "realizada")
    before = await rows(work.database, "SELECT * FROM clientes ORDER BY id")
    document = await lgpd_of(work).exportar(ana.telefone, por="operadora", motivo="pediu")
    text = json.dumps(document, ensure_ascii=False)
    assert [sign for sign in bia.sinais if sign in text] == []
    assert ("Outra" in text, "operadora" in text, '"por"' in text) == (False, False, False)
    expected = {
        "clientes", "doctor_state", "external_contacts", "contatos_lid", "conversations", "conversas_historico", "interacoes",
        "fila_mensagens", "fila_mensagens_dlq", "mensagens_fora_horario", "pendencias", "optouts_provaveis", "provedor_mensagens",
        "webhook_inbox", "business_events", "contatos_grupo", "mensagens_grupo", "vagas_grupo", "vagas_grupo_fontes", "vagas",
        "appointments", "tasks",
    }  # fmt: skip
    assert {*document["tabelas"]} == expected
    (person,) = document["tabelas"]["clientes"]
    assert (person["telefone"], person["primeiro_nome"], person["cpf"]) == (ana.telefone, ana.nome, ana.cpf)
    assert {each["conteudo"] for each in document["tabelas"]["interacoes"]} == {ana.marca}
    assert document["mencoes"] == {"mensagens_grupo.texto": 1, "audit_log.after": 1, "business_events.event_props": 1}
    assert await rows(work.database, "SELECT * FROM clientes ORDER BY id") == before
    stored = await one(work.database, "SELECT * FROM lgpd_pedidos")
    assert (stored["tipo"], stored["alvo"], stored["contagens"]["clientes"]) == ("exportar", None, 1)


async def test_shift_contact_is_not_exported_to_the_doctor(work: Batuta) -> None:
    ana, bia = await add_everywhere(work, 1), await add_everywhere(work, 2)
    await add_shift(work, bia, "realizada")
    (vaga,) = await rows(work.database, "SELECT id FROM vagas")
    await write(work.database, "UPDATE vagas SET cliente_id = :id", id=ana.medico)
    shown = (await lgpd_of(work).exportar(ana.medico, por="x", motivo="x"))["tabelas"]["vagas"]
    assert ([each["id"] for each in shown], bia.nome in str(shown)) == ([vaga["id"]], False)
    contact = (await lgpd_of(work).exportar(bia.medico, por="x", motivo="x"))["tabelas"]["vagas"]
    assert ([each["contato_nome"] for each in contact], ana.medico in str(contact)) == ([bia.nome], False)


async def ask(julia: Julia, path: str, token: dict[str, str] = BEARER, **body: Any) -> httpx2.Response:
    return await julia.ask(
        "POST",
        f"{LGPD}/{path}",
        content=json.dumps({"motivo": "pediu por e-mail", **body}),
        headers={"Content-Type": "application/json", "Accept-Language": "pt-BR", **token},
    )


async def test_person_is_exported_and_erased_over_http(julia: Julia) -> None:
    ana = await add_everywhere(julia.work, 3)
    exported = await ask(julia, "exportar", pessoa=ana.telefone)
    assert (exported.status_code, len(exported.json()["tabelas"]["clientes"])) == (200, 1)
    erased = await ask(julia, "apagar", pessoa=ana.telefone)
    receipt = erased.json()
    assert (erased.status_code, receipt["completo"], receipt["contagens"]["clientes"]) == (200, True, 1)
    again = await ask(julia, "apagar", pessoa=ana.telefone)
    assert (again.status_code, ana.telefone in again.text) == (404, False)
    listed = (await julia.ask("GET", f"{LGPD}/pedidos", headers=BEARER)).json()["pedidos"]
    assert [(each["tipo"], each["completo"]) for each in listed] == [("apagar", True), ("exportar", True)]
    shown = await julia.ask("GET", f"{LGPD}/pedidos/{receipt['pedido']}", headers=BEARER)
    assert shown.json()["contagens"] == receipt["contagens"]
    missing = await julia.ask("GET", f"{LGPD}/pedidos/{julia.work.ids.new()}", headers=BEARER)
    assert missing.status_code == 404


async def test_narrow_token_neither_exports_nor_erases(julia: Julia) -> None:
    ana = await add_everywhere(julia.work, 3)
    for scopes, codes in (
        ({Scope.READ, Scope.OPERATE}, (403, 403)),
        ({Scope.READ, Scope.PII}, (200, 403)),
    ):
        token, secret = mint("estreito", scopes, by="x", now=julia.work.clock.now(), chance=secrets.token_hex)
        await julia.work.tokens.keep(token)
        bearer = {"Authorization": f"Bearer {secret}"}
        found = [(await ask(julia, path, bearer, pessoa=ana.telefone)).status_code for path in ("exportar", "apagar")]
        assert tuple(found) == codes


async def _add(folder: Path) -> Pessoa:
    async with build(Settings(database_url=f"sqlite:///{folder}/julia.db")).work as work:
        return await add_everywhere(work, 3)


def test_commands_write_a_private_file_and_a_receipt(
    folder: Path, batuta: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "sqlite:///julia.db")
    ana, file = asyncio.run(_add(folder)), folder / "dados.json"
    file.write_text("velho")
    file.chmod(0o644)
    code, out, err = batuta(*JULIA, "lgpd", "exportar", ana.telefone, "--saida", str(file))
    assert (code, "registros gravados" in out, ana.telefone in out + err) == (0, True, False)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text(encoding="utf-8"))["tabelas"]["clientes"][0]["primeiro_nome"] == ana.nome
    code, out, _ = batuta(*JULIA, "lgpd", "apagar", ana.medico, "--motivo", "pediu", "--json")
    assert (code, json.loads(out)["completo"]) == (0, True)
    code, out, err = batuta(*JULIA, "lgpd", "apagar", ana.telefone)
    assert (code, "nenhum dado desta pessoa" in err, ana.telefone in err) == (1, True, False)
    code, out, _ = batuta(*JULIA, "lgpd", "pedidos")
    assert (code, out.count("completo")) == (0, 2)
