"""Helpers for tests of Julia's dashboard: browsers signed in with a role, group messages, and action forms."""

import html
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
from fastapi import FastAPI

from app.composition.julia import Julia
from app.contexts.comum.telefone import address
from app.contexts.webhooks.api import DeGrupo
from app.main import build
from app.settings import Settings
from app.web.api import create_app
from batuta.access import Scope, mint
from batuta.config import load_settings
from batuta.testing import FakeClock
from tests.julia.tables import rows
from tests.julia.web.test_access import SECRETS
from tests.julia.web.test_api import TOKEN

READER = (Scope.READ,)
OPERATOR = (Scope.READ, Scope.OPERATE)
SENDER = (*OPERATOR, Scope.SEND)
REVIEWER = (*OPERATOR, Scope.PII)
ADMIN = (*SENDER, Scope.TOKENS)
EVERYTHING = (*ADMIN, Scope.PII)
AUTHOR = "5511900000077@s.whatsapp.net"
# Written so that the reader is uncertain about the hospital, and no rule matches the last words.
OFFER = (
    "Plantão na Vila Inventada\nPediatria\n{day}, noturno 19h às 7h\nR$ 1.600\n"
    "Chamar Fulana de Teste 11 90000-0088 e levar jaleco roxo"
)


@dataclass
class Painel:
    julia: Julia
    api: FastAPI
    clock: FakeClock
    said: int = 0

    @property
    def database(self) -> Any:
        return self.julia.work.database

    @asynccontextmanager
    async def browser(self, *scopes: Scope) -> AsyncIterator[httpx2.AsyncClient]:
        """Return a browser that is signed in with a token for the given scopes, and that sends the same headers as the
        dashboard's pages.
        """
        self.said += 1
        number = self.said
        token, text = mint(
            f"pessoa{number}", scopes, by="teste", now=self.clock.now(), chance=lambda n: f"{number:02x}" * n
        )
        await self.julia.work.tokens.keep(token)
        transport = httpx2.ASGITransport(app=self.api, client=("127.0.0.1", 5000))
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://127.0.0.1:8000", headers={"Accept": "text/html"}
        ) as client:
            entered = await client.post("/painel/entrar", data={"token": text})
            assert entered.status_code == 303, entered.text
            yield client

    async def post_in_group(self, text: str, *, group: str = "120363000000000001@g.us", author: str = AUTHOR) -> None:
        """Post a message in a group and let the pipeline read it."""
        self.said += 1
        fact = DeGrupo(
            message_id=f"3EB0{self.said:06d}",
            instance="escuta",
            grupo=group,
            autor=address(author, None),
            nome="Pessoa Teste",
            texto=text,
            midia=None,
            encaminhada=False,
            em=self.clock.now(),
            citada=None,
        )
        async with self.database.transaction() as transaction:
            await self.julia.groups.grupos.ingerir(transaction, fact, now=self.clock.now())
        await self.julia.groups.operacao.ciclo(5_000, 200)
        await self.clock.advance(timedelta(seconds=1))

    async def offers(self, count: int) -> list[str]:
        """Post offers that need a review, on different days. Return the ids of their vacancies, oldest first."""
        for n in range(count):
            day = self.clock.now() + timedelta(days=3 + n)
            await self.post_in_group(OFFER.format(day=f"{day:%d/%m}"))
        sql = "SELECT id FROM vagas_grupo WHERE status = 'aguardando_revisao' ORDER BY created_at, id"
        return [str(row["id"]) for row in await rows(self.database, sql)]

    async def audit(self, prefix: str) -> list[tuple[str, str, str]]:
        found = await rows(self.database, "SELECT actor, action, subject FROM audit_log ORDER BY at, id")
        return [(row["actor"], row["action"], row["subject"]) for row in found if row["action"].startswith(prefix)]


@asynccontextmanager
async def open_painel(url: str, clock: FakeClock, folder: Path) -> AsyncIterator[Painel]:
    env = {"DATABASE_URL": url, "API_TOKEN": TOKEN, "APP_ENV": "production", "OPTOUT_JOURNAL": f"{folder}/optouts"}
    julia = build(load_settings(Settings, {**env, **SECRETS}), clock=clock)
    async with julia.work:
        yield Painel(julia, create_app(julia), clock)


def proof_in(page: httpx2.Response) -> str:
    found = re.search(r'name="csrf" value="([^"]+)"', page.text)
    return "" if found is None else html.unescape(found[1])


async def act(client: httpx2.AsyncClient, name: str, **values: str) -> httpx2.Response:
    """Perform an action as a browser without JavaScript does: open its form, then submit it."""
    form = await client.get(f"/painel/acoes/{name}", params=values)
    return await client.post(f"/painel/acoes/{name}", data={**values, "csrf": proof_in(form)})


def text_of(page: httpx2.Response) -> str:
    """Return a page's visible text, without tags, with entities decoded and repeated spaces collapsed."""
    body = re.sub(r"<(script|style)\b.*?</\1>", " ", page.text, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())
