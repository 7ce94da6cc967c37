"""The engine's pages and actions in many views, which the module ``views`` defines."""

from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from playwright.async_api import Page

from batuta.stores.sql.queries import query_of
from tests.engine.web.browser.panel import MINUTE
from tests.engine.web.browser.test_panel import PAGES, Dashboard, dashboard
from tests.engine.web.browser.views import IS_FULL, VIEWS, View, faults_of, perform, serious_of
from tests.engine.web.test_queues import fail

__all__ = ["dashboard"]

AUDIT = query_of("audit", "SELECT action FROM audit_log ORDER BY at DESC, id DESC LIMIT 3", writes=False)
ROWS = "SELECT count(*) AS found FROM "
NIGHT = "schedules WHERE name = 'night' AND paused = "
FEW = ("/painel", "/painel/tarefas", "/painel/freios", "/painel/filas/default")


class Step(NamedTuple):
    """An action on the dashboard: the page that offers it, its form fields, the row that must exist afterwards, and its
    audit entry.
    """

    page: str
    action: str
    fields: dict[str, str] = {}  # noqa: RUF012
    rows: str = ""  # a table with a condition that exactly one row fulfils afterwards
    audit: str = ""  # name of the audit entry; empty means the name of the action


TEST, GONE = {"motivo": "teste", "prazo": "2h"}, "(SELECT 1) AS x WHERE NOT EXISTS (SELECT 1 FROM "
PAST = {"desde": "01/01/2020 00:00", "ate": "01/01/2020 00:10"}
CREATED = {"nome": "night", "tarefa": "send", "quando": "0 3 * * *", "argumentos": "to=x"}
HOLDER = {"nome": "rui", "papel": "operator", "prazo": "90d"}
PAUSED = "feature_flags WHERE key = 'pause.job.pulse'"
STEPS = (
    Step("/tarefas/pulse", "job.run", {"parametros": "day=5"}, "job_executions WHERE trigger = 'manual'"),
    Step("/tarefas/pulse", "pause", TEST, PAUSED, "switch.set"),
    Step("/tarefas/pulse", "resume", {"motivo": "fim"}, audit="switch.set"),
    Step("/filas/default/{dead}", "item.edit", {"mudancas": "to=Beltrana"}, "tasks WHERE args LIKE '%Beltrana%'"),
    Step("/filas/default/{dead}", "item.retry", {}, "tasks WHERE id = '{dead}' AND status = 'queued'", "queue.retry"),
    Step("/filas/default/{dead}", "item.cancel", {}, "tasks WHERE id = '{dead}' AND status = 'cancelled'"),
    Step("/filas/default/{other}", "item.discard", {}, GONE + "tasks WHERE id = '{other}')", "queue.discard"),
    Step("/filas/default?estado=dead", "bulk.retry", {}, "bulk_operations WHERE change = 'retry'"),
    Step("/filas/default", "bulk.stop", {}, "bulk_operations WHERE change = 'retry' AND status = 'stopped'"),
    Step("/filas/default?estado=dead", "bulk.discard", {}, "bulk_operations WHERE change = 'discard'"),
    Step("/filas/default?estado=ready", "bulk.cancel", {}, "bulk_operations WHERE change = 'cancel'"),
    Step("/filas", "batch.close", {}, "batches WHERE closed_at IS NOT NULL"),
    Step("/filas", "batch.cancel", {"motivo": "lista errada"}, "batches WHERE cancelled_at IS NOT NULL"),
    Step("/processos", "process.stack", {}, "process_requests WHERE request = 'stack'"),
    Step("/processos", "process.restart", {}, "process_requests WHERE request = 'restart'"),
    Step("/processos", "process.drain", {}, "process_requests WHERE request = 'drain'"),
    Step("/freios", "circuit.open", TEST, "circuits WHERE state = 'open'"),
    Step("/freios", "circuit.probe", {"motivo": "voltou"}),
    Step("/freios", "circuit.close", {"motivo": "voltou"}, "circuits WHERE state = 'closed'", "circuit.reset"),
    Step("/programacoes", "schedule.create", CREATED, NIGHT + "FALSE"),
    Step("/programacoes", "schedule.edit", {"quando": "5m"}, "schedules WHERE schedule = '@every 300s'"),
    Step("/programacoes", "schedule.backfill", PAST, "job_executions WHERE trigger = 'catch_up'"),
    Step("/programacoes", "schedule.pause", {}, NIGHT + "TRUE", "schedule.edit"),
    Step("/programacoes", "schedule.resume", {}, NIGHT + "FALSE", "schedule.edit"),
    Step("/programacoes", "schedule.delete", {}, GONE + "schedules)"),
    Step("/tokens", "token.create", HOLDER, "api_tokens WHERE name = 'rui'"),
    Step("/tokens", "token.rotate", {"prazo": "2h"}, "api_tokens WHERE name = 'rui' GROUP BY name HAVING count(*) = 2"),
    Step("/tokens", "token.revoke", {}, "api_tokens WHERE revoked_at IS NOT NULL"),
)  # fmt: skip


async def prepare(opened: Dashboard) -> dict[str, str]:
    """Add tasks, a batch, a process and a circuit. Return the ids that replace the placeholders in page addresses, by
    placeholder.
    """
    work, clock = opened.panel.work, opened.panel.clock

    @work.task()
    async def send(to: str) -> None: ...

    ids = [str(await work.enqueue(send, f"Fulana {n}")) for n in range(6)]
    for id in ids[:4]:
        await fail(work, id=id, error="HTTP 500: no answer", now=clock.now())
    work.circuit("mail")
    await work.circuits.look()
    await work.beats.beat("w:1", "worker", {"outbound": {"alive": True}}, now=clock.now(), host="web1", pid=7)
    batch = await work.batch("import 7").__aenter__()  # like a program that died before it closed the batch
    await batch.add(send, [("Sicrana",)])
    run = await opened.panel.keep("broken", MINUTE, "error", error="x" * 400, result={"key": "y" * 400})
    return {"dead": ids[0], "other": ids[1], "id": run}


@pytest.mark.parametrize("view", VIEWS, ids=str)
async def test_pages_have_no_fault(dashboard: Dashboard, view: View) -> None:
    known = await prepare(dashboard)
    whole = (*PAGES, "/painel/programacoes", "/painel/tokens", "/painel/filas/default", "/painel/filas/default/{dead}")
    found: dict[str, list[str]] = {}
    page = await dashboard.visit("/painel", **view.options)
    for path in whole if IS_FULL else FEW:
        answer = await page.goto(dashboard.address + path.format(**known))
        faults = await faults_of(page, answer, view)
        found |= {path: faults} if faults else {}
        if view.script and (serious := await serious_of(page)):
            found[f"{path}, axe"] = serious
    assert found == {}


@pytest.mark.skipif(not IS_FULL, reason="MATRIX=full performs every action in every view")
@pytest.mark.parametrize("view", VIEWS, ids=str)
async def test_every_action_changes_its_row_and_leaves_an_entry(dashboard: Dashboard, view: View) -> None:
    known = await prepare(dashboard)
    page = await dashboard.visit("/painel", **view.options)
    for step in STEPS:
        await take(page, dashboard, step, known)
    known_actions = {name for name in dashboard.panel.api.state.batuta.actions if not name.startswith("switch.")}
    assert known_actions == {step.action for step in STEPS}


async def take(page: Page, opened: Dashboard, step: Step, known: dict[str, str]) -> None:
    work: Any = opened.panel.work
    await page.goto(f"{opened.address}/painel{step.page.format(**known)}")
    assert await perform(page, step.action, step.fields)
    entries = [row["action"] for row in await work.database.all(AUDIT)]
    assert (step.audit or step.action) in entries, (step.action, entries)
    if step.rows:
        query = query_of("rows", ROWS + step.rows.format(**known), writes=False)
        assert (await work.database.all(query))[0]["found"] >= 1, step
    opened.panel.clock.step(timedelta(seconds=1))
