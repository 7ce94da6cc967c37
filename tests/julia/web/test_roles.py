"""Every action in the dashboard with every role. If a role may not perform an action, it gets no button and no form,
and a request has no effect.
"""

import html
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import httpx2

from app.contexts.mensagens.api import FILA_MENSAGENS
from batuta.access import Scope, includes
from batuta.testing import FakeClock
from tests.julia.tables import add_chip, rows, write
from tests.julia.web.painel import ADMIN, EVERYTHING, OPERATOR, READER, REVIEWER, SENDER, Painel, open_painel, proof_in
from tests.julia.web.test_addresses import pages
from tests.julia.web.test_campanhas_screen import campaign
from tests.julia.web.test_conversas_screen import escalate, put_in_doubt, talk_with

ROLES: dict[str, tuple[Scope, ...]] = {
    "leitura": READER,
    "leitura + pii": (*READER, Scope.PII),
    "operador": OPERATOR,
    "operador + pii": REVIEWER,
    "envio": SENDER,
    "admin": ADMIN,
    "admin + pii": EVERYTHING,
}
ACTION, TOKENS = "/painel/acoes/", "/painel/tokens"
OFFERED = re.compile(rf'(?:href|action|formaction)="({ACTION}[^"]+)"')


async def test_an_action_is_refused_exactly_to_a_role_without_its_scope(julia_url: str, tmp_path: Path) -> None:
    async with open_painel(julia_url, FakeClock(), tmp_path) as painel:
        actions = painel.api.state.batuta.actions
        assert len(actions) > 40
        for role, scopes in ROLES.items():
            async with painel.browser(*scopes) as client:
                proof = proof_in(await client.get("/painel/auditoria"))
                client.headers["Accept"] = "application/json"  # a problem as JSON is rendered faster than a page
                for name, action in actions.items():
                    is_refused = not includes(frozenset(scopes), action.scope)
                    form = await client.get(ACTION + name)
                    done = await client.post(ACTION + name, headers={"X-CSRF-Token": proof})
                    refused = (form.status_code == 403, done.status_code == 403)
                    assert refused == (is_refused, is_refused), (role, name, done.text)
        async with painel.browser(*READER) as visitor:
            visitor.cookies.clear()
            for method, name in product(("GET", "POST"), actions):
                answer = await visitor.request(method, ACTION + name)
                assert answer.status_code == 303, (method, name)
                assert answer.headers["location"].startswith("/painel/entrar"), (method, name)


async def test_a_page_offers_exactly_the_actions_that_the_role_may_perform(julia_url: str, tmp_path: Path) -> None:
    async with open_painel(julia_url, FakeClock(), tmp_path) as painel:
        shown = await fill(painel)
        work, actions = painel.julia.work, painel.api.state.batuta.actions
        sending = {name for name in work.queues if work.scope_of_queue(name) is Scope.SEND}
        assert FILA_MENSAGENS.name in sending
        async with painel.browser(*EVERYTHING) as client:
            every = {page: set(offered(await client.get(page))) for page in shown}
        names = {name_of(each) for page in every.values() for each in page}
        assert {each.partition(".")[0] for each in names} >= {
            "item",
            "bulk",
            "job",
            "token",
            "campanha",
            "conversa",
            "revisao",
        }
        for role, scopes in list(ROLES.items())[:-1]:
            async with painel.browser(*scopes) as client:
                for page, wanted in every.items():
                    may = {each for each in wanted if includes(frozenset(scopes), actions[name_of(each)].scope)}
                    if Scope.SEND not in scopes:
                        may = {each for each in may if not is_retry(each, page, sending)}
                    if page == TOKENS and Scope.TOKENS not in scopes:
                        assert (await client.get(page)).status_code == 403, role
                    elif page == TOKENS:  # lists the tokens of the browsers too
                        found = {name_of(each) for each in offered(await client.get(page))}
                        assert found == set(map(name_of, wanted)), role
                    elif wanted:
                        assert set(offered(await client.get(page))) == may, (role, page)


def is_retry(offer: str, page: str, queues: set[str]) -> bool:
    """Return whether an offered action retries items of one of these queues."""
    is_of_queue = any(f"fila={name}" in offer or f"/filas/{name}" in page for name in queues)
    return is_of_queue and name_of(offer) in ("item.retry", "item.edit", "bulk.retry")


def offered(page: httpx2.Response) -> Iterator[str]:
    assert page.status_code == 200, page.text
    yield from map(html.unescape, OFFERED.findall(page.text))


def name_of(offer: str) -> str:
    return offer.removeprefix(ACTION).partition("?")[0]


async def fill(painel: Painel) -> list[str]:
    """For each screen, store a record on which the screen's actions can be performed. Return the pages' addresses."""
    await add_chip(painel.database, "julia-sim")
    await painel.julia.telegram.contas.adicionar("principal", by="ana")
    await painel.offers(1)
    sent = await campaign(painel)
    waiting = await talk_with(painel, 9)
    await escalate(painel, waiting)
    queue = f"/painel/filas/{FILA_MENSAGENS.name}"
    (message,) = await rows(painel.database, "SELECT id FROM fila_mensagens")
    await write(
        painel.database, "UPDATE fila_mensagens SET status = 'erro', finalizada_em = :now", now=painel.clock.now()
    )
    await put_in_doubt(painel, 1, "parked")
    return [
        *(page for page in pages(painel) if "{" not in page),
        f"{queue}?estado=dead",
        f"{queue}/{message['id']}",
        f"/painel/campanhas/{sent}",
        f"/painel/conversas/{waiting}",
    ]
