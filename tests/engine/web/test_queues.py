"""The pages for queues and items, and the actions that operators perform there."""

import re
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from batuta import Batuta, TaskContext
from batuta.access import Scope, mint
from batuta.config import EngineSettings, load_settings
from batuta.engine.batuta import Batuta as Work
from batuta.health.alerts import change_incident
from batuta.health.finding import Finding, Report, Severity
from batuta.health.finding import assess as health_of
from batuta.health.queues import Pulse, WatchedQueue
from batuta.queue.inspection import BulkChange, BulkOperator, ItemFilter, signature_of
from batuta.queue.item import ItemState
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.supervise.loop import Idle
from batuta.testing import FakeClock
from batuta.web import create_api
from batuta.web.counts import KEPT_SECONDS, LARGE, LargeCounts
from batuta.web.live import live_parts

SECRETS = {"API_TOKEN": "t" * 40, "SECRET_KEY": "s" * 40, "APP_ENV": "production", "BATUTA_HTTPS": "false"}
HOSTILE = "<script>alert('5')</script><img src=x onerror=alert(1)>"
SET_UP = ("token.create", "session.begin")
AUDIT = query_of("audit", "SELECT actor, action, subject FROM audit_log ORDER BY at DESC, id DESC", writes=False)
STATES = query_of("states", "SELECT status, count(*) AS items FROM tasks GROUP BY 1", writes=False)
FAIL = query_of(
    "fail",
    "UPDATE tasks SET status = 'failed', error = :error, finished_at = :now, attempts = 5 WHERE id = :id",
    writes=True,
)


async def fail(work: Work, **values: object) -> None:
    await work.database.run(in_dialect(FAIL, work.database.dialect), **values)


@dataclass
class Plant:
    work: Work
    api: FastAPI
    ids: list[str]

    async def browser(self, *scopes: Scope) -> httpx2.AsyncClient:
        now = self.work.clock.now()
        token, text = mint("ana", scopes, by="test", now=now, chance=secrets.token_hex)
        await self.work.tokens.keep(token)
        transport = httpx2.ASGITransport(app=self.api, client=("10.0.0.1", 5000))
        client = httpx2.AsyncClient(
            transport=transport, base_url="http://batuta.test", headers={"Accept": "text/html"}, follow_redirects=True
        )
        assert (await client.post("/painel/entrar", data={"token": text})).status_code == 200
        return client

    async def entries(self) -> list[tuple[Any, ...]]:
        rows = await self.work.database.all(AUDIT)
        return [(row["actor"], row["action"], row["subject"]) for row in rows if row["action"] not in SET_UP]

    async def states(self) -> dict[str, int]:
        return {row["status"]: row["items"] for row in await self.work.database.all(STATES)}


@pytest.fixture
async def plant(database_url: str) -> AsyncIterator[Plant]:
    """Fill a queue with two waiting tasks and four dead ones. Three of the dead tasks have the same cause, which
    contains HTML, and the fourth has another.
    """
    work = Batuta(database_url, clock=FakeClock())

    @work.task()
    async def send(context: TaskContext, name: str) -> None: ...

    async with work:
        ids = [str(await work.enqueue(send, f"Fulana {n}")) for n in range(6)]
        for n, id in enumerate(ids[:4]):
            error = f"HTTP 500 after {n} s: {HOSTILE}" if n < 3 else "no such person"
            await fail(work, id=id, error=error, now=work.clock.now())
        settings = load_settings(EngineSettings, {"DATABASE_URL": database_url, **SECRETS})
        yield Plant(work, create_api(work, settings), ids)


def proof_in(page: str) -> str:
    found = re.search(r'name="csrf" value="(\w+)"', page)
    assert found
    return found[1]


async def act(client: httpx2.AsyncClient, name: str, **data: Any) -> httpx2.Response:
    form = await client.get(f"/painel/acoes/{name}", params=data)
    return await client.post(f"/painel/acoes/{name}", data={**data, "csrf": proof_in(form.text)})


async def finish(work: Work) -> None:
    operator = BulkOperator(lambda: work.bulk)
    while not isinstance(await operator.tick(), Idle):
        pass


async def test_the_queue_page_counts_states_and_groups_failures_by_cause(plant: Plant) -> None:
    client = await plant.browser(Scope.OPERATE)
    page = (await client.get("/painel/filas/default")).text
    assert "3×" in page
    assert "1×" in page
    assert HOSTILE not in page
    signature = signature_of("send", f"HTTP 500 after 7 s: {HOSTILE}")
    assert f"erro={signature}" in page
    group = (await client.get(f"/painel/filas/default?estado=dead&erro={signature}")).text
    assert [id in group for id in plant.ids] == [True, True, True, False, False, False]
    assert "default" in (await client.get("/painel/filas?estado=dead")).text


async def test_the_address_of_an_error_group_shows_that_group_with_its_error_and_its_actions(plant: Plant) -> None:
    client = await plant.browser(Scope.OPERATE)
    signature = signature_of("send", f"HTTP 500 after 7 s: {HOSTILE}")
    page = (await client.get(f"/painel/filas/default?estado=dead&erro={signature}")).text
    groups = page[page.index('<div id="grupos"') :].split("</section>")[0]
    assert ("3×" in groups, "1×" in groups) == (True, False)
    assert f"bulk.retry?fila=default&amp;erro={signature}" in groups
    (tag,) = re.findall(r'<span class="tag">(.*?)<a', page)
    assert ("HTTP 500 after" in tag, signature in tag) == (True, False)
    item = (await client.get(f"/painel/filas/default/{plant.ids[0]}")).text
    assert f'href="/painel/filas/default?estado=dead&amp;erro={signature}"' in item


def attention_in(page: str) -> str:
    """Return the findings on the dashboard's first page."""
    return page[page.index('id="saude"') :].split("</section>")[0]


async def test_a_finding_about_dead_items_leads_to_each_error_group(plant: Plant) -> None:
    client, reader = await plant.browser(Scope.OPERATE), await plant.browser(Scope.READ)
    signature = signature_of("send", f"HTTP 500 after 7 s: {HOSTILE}")
    group = f'href="/painel/filas/default?estado=dead&amp;erro={signature}"'
    two = attention_in((await client.get("/painel")).text)
    assert (two.count(group), "3×" in two, "1×" in two, "bulk.retry" in two) == (1, True, True, False)
    assert HOSTILE not in two
    await act(client, "item.discard", fila="default", id=plant.ids[3])
    one = attention_in((await client.get("/painel")).text)
    assert one.count(group) == 2  # the group and the finding's own button
    assert f"bulk.retry?fila=default&amp;erro={signature}" in one
    assert "bulk.retry" not in attention_in((await reader.get("/painel")).text)


async def test_a_cause_of_an_incident_leads_to_its_page_or_its_error_group(plant: Plant) -> None:
    facts = {"queue": "default", "count": 3, "age": "1 s"}
    dead = Finding(severity=Severity.ERROR, source="queues", cause="queue.dead.default", says="queue_dead", facts=facts)
    role = {"role": "worker", "last": "54 s"}
    alone = Finding(severity=Severity.CRITICAL, source="workers", cause="w", says="role_deserted", facts=role)
    report = Report(findings=(dead, alone), lost=70)
    opened = change_incident(health_of([("queues", report)], plant.work.clock.now()), None, None).opens
    assert opened is not None
    await plant.work.observability.incidents.write(opened, now=plant.work.clock.now())
    client = await plant.browser(Scope.OPERATE)
    queue = 'href="/painel/filas/default?estado=dead'
    html = (await client.get("/painel/incidentes")).text
    assert ('<a href="/painel/processos">' in html, f'{queue}">' in html) == (True, True)
    await act(client, "item.discard", fila="default", id=plant.ids[3])
    signature = signature_of("send", f"HTTP 500 after 7 s: {HOSTILE}")
    assert f'{queue}&amp;erro={signature}">' in (await client.get("/painel/incidentes")).text


async def test_the_first_page_of_an_error_group_is_full_although_newer_items_have_other_errors(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("batuta.web.panel.pages.queues.PAGE", 2)
    monkeypatch.setattr("batuta.stores.sql.queue.inspection.BATCH", 1)
    for age, id in enumerate(plant.ids[:4]):
        error = "timeout" if age >= 1 else "no such person"
        await fail(plant.work, id=id, error=error, now=plant.work.clock.now() - timedelta(minutes=age))
    client = await plant.browser(Scope.READ)
    address = f"/painel/filas/default?estado=dead&erro={signature_of('send', 'timeout')}"
    first = (await client.get(address)).text
    following = re.search(r'rel="next" href="\?([^"]+)"', first)
    assert following
    second = (await client.get(f"/painel/filas/default?{following[1].replace('&amp;', '&')}")).text
    shown = [re.findall(r'value="([0-9a-f-]{36})" aria-label', page) for page in (first, second)]
    assert shown == [plant.ids[1:3], plant.ids[3:4]]


async def test_the_tag_of_an_error_group_that_is_gone_says_so(plant: Plant) -> None:
    client = await plant.browser(Scope.OPERATE)
    page = (await client.get("/painel/filas/default?estado=dead&erro=0123456789ab")).text
    (tag,) = re.findall(r'<span class="tag">(.*?)<a', page)
    assert ("sem itens agora" in tag, "0123456789ab" in tag) == (True, False)
    assert "Nenhum item corresponde ao filtro." in page


async def test_pages_follow_each_other_without_a_gap(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("batuta.web.panel.pages.queues.PAGE", 3)
    client = await plant.browser(Scope.READ)
    first = (await client.get("/painel/filas/default?estado=dead")).text
    following = re.search(r'rel="next" href="\?([^"]+)"', first)
    assert following
    second = (await client.get(f"/painel/filas/default?{following[1].replace('&amp;', '&')}")).text
    shown = [set(re.findall(r'value="([0-9a-f-]{36})" aria-label', page)) for page in (first, second)]
    assert len(shown[0]) == 3
    assert shown[0] | shown[1] == set(plant.ids[:4])
    assert not shown[0] & shown[1]


async def test_a_selection_is_retried_and_each_item_leaves_an_entry(plant: Plant) -> None:
    client = await plant.browser(Scope.OPERATE)
    page = await act(client, "item.retry", fila="default", escolhido=plant.ids[:2])
    assert "Itens de volta à fila: 2 de 2." in page.text
    assert await plant.states() == {"queued": 4, "failed": 2}
    assert sorted(await plant.entries()) == sorted(("token ana", "queue.retry", f"tasks:{id}") for id in plant.ids[:2])


async def test_one_item_is_discarded_or_cancelled_with_an_entry(plant: Plant) -> None:
    client = await plant.browser(Scope.OPERATE)
    await act(client, "item.discard", fila="default", id=plant.ids[0])
    await act(client, "item.cancel", fila="default", id=plant.ids[4])
    assert await plant.states() == {"queued": 1, "failed": 3, "cancelled": 1}
    assert [(action, subject) for _, action, subject in await plant.entries()] == [
        ("item.cancel", f"default:{plant.ids[4]}"),
        ("queue.discard", f"tasks:{plant.ids[0]}"),
    ]


async def test_a_batch_is_shown_with_its_progress_and_cancelled_with_an_entry(plant: Plant) -> None:
    batch = await plant.work.batches.create(f"import {HOSTILE}")
    send = plant.work.task_registry.get("send")
    await batch.add(send, [["a"], ["b"]])
    waiting = await send.options(after=[batch]).enqueue("c")
    client = await plant.browser(Scope.OPERATE)
    page = (await client.get("/painel/filas")).text
    assert HOSTILE not in page
    assert f"/painel/acoes/batch.close?lote={batch.id}" in page
    item = (await client.get(f"/painel/filas/default/{waiting.id}")).text
    assert "espera o fim do lote" in item
    assert "9000-01-01T00:00:00" not in item + (await client.get("/painel/filas/default?estado=ready")).text
    await act(client, "batch.close", lote=batch.id)
    await act(client, "batch.cancel", lote=batch.id, motivo="lista errada")
    assert (await batch.progress()).cancelled == 2
    assert sorted(await plant.entries()) == [
        ("token ana", f"batch.{change}", f"batches:{batch.id}") for change in ("cancel", "close")
    ]


async def test_viewers_of_a_large_queue_share_its_counts_for_seconds() -> None:
    clock, asked, due = FakeClock(), [], LARGE

    async def pulse() -> Pulse:
        asked.append(1)
        return Pulse(now=clock.now(), due=due, oldest_due_at=None, stuck=0, dead=0, dead_lately=0)

    counts, queue = LargeCounts(clock), WatchedQueue(name="mail", pulse=pulse, loops=())
    for _ in range(20):
        assert (await counts.pulse(queue)).due == LARGE
    assert len(asked) == 1
    counts.forget()  # an operator changed something
    await counts.pulse(queue)
    await clock.advance(KEPT_SECONDS)
    due = 1  # small queues are counted every time
    await counts.pulse(queue)
    await counts.pulse(queue)
    assert len(asked) == 4


async def test_everything_of_an_error_group_is_retried_by_a_durable_operation(plant: Plant) -> None:
    client = await plant.browser(Scope.OPERATE)
    signature = signature_of("send", f"HTTP 500 after 7 s: {HOSTILE}")
    page = await act(client, "bulk.retry", fila="default", erro=signature)
    assert "A operação em 3 itens começou." in page.text
    assert "em andamento" in page.text
    assert (await plant.entries())[0][:2] == ("token ana", "bulk.retry")
    await finish(plant.work)
    assert await plant.states() == {"queued": 5, "failed": 1}
    (operation,) = await plant.work.bulk.recent("default")
    assert (operation.status, operation.changed, operation.expected) == ("done", 3, 3)
    assert "concluída" in (await client.get("/painel/filas/default")).text


async def test_live_page_of_dead_items_drops_the_error_groups_after_a_retry_of_all(plant: Plant) -> None:
    client, address = await plant.browser(Scope.OPERATE), "/painel/filas/default?estado=dead"
    before = live_parts((await client.get(address)).text)
    await act(client, "bulk.retry", fila="default")
    await finish(plant.work)
    changed = live_parts((await client.get(address)).text).since(before)
    assert "<li" not in changed["grupos"]


async def test_page_without_a_batch_has_a_place_for_the_first_one(plant: Plant) -> None:
    client = await plant.browser(Scope.OPERATE)
    page = (await client.get("/painel/filas")).text
    assert 'id="lotes" data-live' in page
    await plant.work.batches.create("remessa")
    changed = live_parts((await client.get("/painel/filas")).text).since(live_parts(page))
    assert "remessa" in changed["lotes"]


async def test_a_stopped_operation_changes_nothing_more(plant: Plant) -> None:
    client = await plant.browser(Scope.OPERATE)
    await act(client, "bulk.discard", fila="default")
    (operation,) = await plant.work.bulk.recent("default")
    page = await act(client, "bulk.stop", operacao=operation.id)
    assert "A operação foi interrompida." in page.text
    await finish(plant.work)
    assert (await plant.states())["failed"] == 4
    assert [action for _, action, _ in await plant.entries()] == ["bulk.stop", "bulk.discard"]


async def test_an_operation_skips_items_that_failed_after_it_began_and_items_with_a_live_twin(
    database_url: str,
) -> None:
    work = Batuta(database_url, clock=FakeClock())

    @work.task()
    async def send(context: TaskContext) -> None: ...

    async with work:
        first = str(await work.enqueue(send, key="k"))
        await fail(work, id=first, error="x", now=work.clock.now())
        await work.enqueue(send, key="k")
        other = str(await work.enqueue(send))
        await fail(work, id=other, error="x", now=work.clock.now() + timedelta(minutes=1))
        third = str(await work.enqueue(send))
        await fail(work, id=third, error="x", now=work.clock.now())
        await work.bulk.add("default", BulkChange.RETRY, ItemFilter(state=ItemState.DEAD), 3, by="ana")
        await finish(work)
        (operation,) = await work.bulk.recent("default")
        assert (operation.status, operation.changed) == ("done", 1)


async def test_the_data_of_an_item_is_hidden_until_it_is_revealed_with_an_entry(plant: Plant) -> None:
    client = await plant.browser(Scope.PII)
    address = f"/painel/filas/default/{plant.ids[0]}"
    page = (await client.get(address)).text
    assert "Fulana" not in page
    assert "Os dados estão ocultos" in page
    assert HOSTILE not in page
    assert "Fulana 0" in (await client.get(f"{address}?mostrar=dados")).text
    assert [action for _, action, _ in await plant.entries()] == ["access.unmask"]


ARGS = query_of("args", "SELECT args FROM tasks WHERE id = :id", writes=False)


async def test_a_dead_item_is_retried_with_changed_arguments(plant: Plant) -> None:
    client = await plant.browser(Scope.OPERATE)
    given = {"fila": "default", "id": plant.ids[0]}
    assert "Fulana" not in (await client.get("/painel/acoes/item.edit", params=given)).text
    for wrong, why in (("nome=x", "name"), ("name=7", "does not fit"), ("name", "por linha")):
        refused = await act(client, "item.edit", **given, mudancas=wrong)
        assert refused.status_code == 422
        assert why in refused.text
    assert await plant.entries() == []
    page = await act(client, "item.edit", **given, mudancas="name=Beltrana")
    id = page.url.path.rpartition("/")[2]
    row = await plant.work.database.one(in_dialect(ARGS, plant.work.database.dialect), id=id)
    assert row is not None
    assert "Beltrana" in str(row["args"])
    assert await plant.states() == {"queued": 3, "failed": 4}
    assert await plant.entries() == [("token ana", "item.edit", plant.ids[0])]


async def test_filters_by_key_tag_and_age_are_in_the_address_and_in_the_operation(plant: Plant) -> None:
    work, client = plant.work, await plant.browser(Scope.OPERATE)
    send = work.task_registry.get("send")
    tagged = str((await send.options(key="k-1", tags=["vip"]).enqueue("Sicrana")).id)
    assert isinstance(work.clock, FakeClock)
    work.clock.step(timedelta(hours=2))
    young = str((await send.options(key="k-2").enqueue("Beltrana")).id)

    async def shown(query: str) -> set[str]:
        page = (await client.get(f"/painel/filas/default?estado=ready&{query}")).text
        return set(re.findall(r'value="([0-9a-f-]{36})" aria-label', page))

    assert await shown("chave=k-1") == await shown("etiqueta=vip") == {tagged}
    assert await shown("idade=1h") == {*plant.ids[4:], tagged}
    assert await shown("chave=k-2&idade=1h") == set()
    page = (await client.get("/painel/filas/default?estado=ready&etiqueta=vip&idade=1h")).text
    assert 'href="?estado=ready&amp;idade=1h"' in page  # the filter without the tag
    assert "1 item" in (await act(client, "bulk.cancel", fila="default", etiqueta="vip", idade="1h")).text
    await finish(work)
    assert await plant.states() == {"queued": 3, "failed": 4, "cancelled": 1}
    assert young in await shown("")


@pytest.mark.parametrize(
    "path",
    ["/painel/filas/nada", "/painel/filas/default/nada", f"/painel/filas/default/{'0' * 8}-0000-0000-0000-{'0' * 12}"],
)
async def test_an_unknown_queue_or_item_is_a_page_with_the_next_step(plant: Plant, path: str) -> None:
    client = await plant.browser(Scope.READ)
    answer = await client.get(path)
    assert answer.status_code == 404
    assert "página da" in answer.text or "página das" in answer.text


async def test_every_page_opens_for_a_reader_without_an_action(plant: Plant) -> None:
    client = await plant.browser(Scope.READ)
    pages = [
        "",
        "/tarefas",
        "/execucoes",
        "/filas",
        "/filas/default",
        "/processos",
        "/freios",
        "/incidentes",
        "/auditoria",
    ]
    for path in (*pages, f"/filas/default/{plant.ids[0]}"):
        answer = await client.get(f"/painel{path}")
        assert answer.status_code == 200, path
        assert "/acoes/" not in answer.text, path


async def test_the_audit_log_is_exported_as_csv_without_formulas(plant: Plant) -> None:
    await plant.work.access.note(actor="=cmd()", action="x.y", subject="CPF 529.982.247-25")
    client = await plant.browser(Scope.READ)
    answer = await client.get("/painel/auditoria.csv")
    assert answer.headers["content-type"].startswith("text/csv")
    assert "'=cmd()" in answer.text
    page = (await client.get("/painel/auditoria")).text
    assert "=cmd()" in page
    assert "token ana" in page
    assert "token ana" in (await client.get("/painel/auditoria.csv")).text
    assert ("529.982" in answer.text, "529.982" in page) == (False, False)
    assert ("token ana", "access.export") in [(actor, action) for actor, action, _ in await plant.entries()]
