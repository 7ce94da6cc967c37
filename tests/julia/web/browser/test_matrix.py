"""Julia's dashboard in a browser: its pages and actions in combinations of language, theme, window width, and
JavaScript on or off. ``tests.engine.web.browser.views`` lists the combinations.
"""

import re
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from playwright.async_api import Page, expect

from tests.engine.web.browser.views import IS_FULL, VIEWS, View, faults_of, perform, serious_of
from tests.julia.tables import add_chip, add_doctor, one, rows, write
from tests.julia.web.browser.conftest import Desk
from tests.julia.web.test_campanhas_screen import campaign
from tests.julia.web.test_conversas_screen import PENDING, talk_with
from tests.julia.web.test_vagas_screen import NEW, created

FEW = ("/revisao", "/conversas", "/agendamentos", "/campanhas/{campaign}")
LISTS = ("/revisao", "/conversas", "/campanhas", "/vagas", "/agendamentos", "/chips", "/telegram")
MORE = (
    "",
    "/tarefas",
    "/filas",
    "/freios",
    "/conversas?fila=julia",
    "/conversas/{talk}",
    "/campanhas/{campaign}",
    "/vagas/{shift}",
)
SHEET = "Nome;Data;Endereco;Documento\r\nPessoa Fictícia;11/03/2026;Rua Um 1;-\r\n;12/03/2026;Rua Dois 2;-\r\n"

# The progress bar disappears with its form, so the page keeps a reference to the first bar.
REMEMBER_BAR = """new MutationObserver(() => { window.bar ??= document.querySelector('.upload:not([hidden])'); })
    .observe(document.body, { subtree: true, attributes: true, childList: true })"""


class Step(NamedTuple):
    """An action on Julia's dashboard: the page that offers it, its form fields, and a query that must return one row
    afterwards.
    """

    page: str
    action: str
    fields: dict[str, str]
    rows: str
    audit: str = ""


WHY = {"motivo": "teste"}
SHIFT = {**NEW, "hospital": "UPA Imaginária", "novo_hospital": "sim"}
LED = "SELECT 1 FROM conversations WHERE id = '{talk}' AND controlled_by = 'ai'"
STEPS = (
    Step("/freios", "switch.off", WHY, "SELECT 1 FROM feature_flags WHERE reason = 'teste'", "switch.set"),
    Step("/freios", "switch.on", WHY, "SELECT 1 FROM feature_flags WHERE reason = 'teste'", "switch.set"),
    Step("/conversas", "pendencia.resolver", WHY, "SELECT 1 FROM pendencias WHERE resolvida_em IS NOT NULL"),
    Step("/conversas/{talk}", "conversa.assumir", WHY, "SELECT 1 FROM conversations WHERE controlled_by = 'human'"),
    Step("/conversas/{talk}", "conversa.devolver", {**WHY, "mensagens": "continuar"}, LED),
    Step("/conversas/{talk}", "conversa.encerrar", WHY, "SELECT 1 FROM conversations WHERE status = 'completed'"),
    Step("/campanhas/{campaign}", "campanha.pausar", {}, "SELECT 1 FROM campanhas WHERE status = 'pausada'"),
    Step("/campanhas/{campaign}", "campanha.retomar", {}, "SELECT 1 FROM campanhas WHERE status = 'ativa'"),
    Step("/campanhas/{campaign}", "campanha.porque", {"quem": "5511900000002"}, "SELECT 1 FROM campanhas"),
    Step("/campanhas/{campaign}", "campanha.cancelar", {}, "SELECT 1 FROM campanhas WHERE status = 'cancelada'"),
    Step("/vagas", "vaga.criar", SHIFT, "SELECT 1 FROM hospitais WHERE nome = 'UPA Imaginária'"),
    Step("/vagas/{shift}", "vaga.reservar", {"medico": "{doctor}"}, "SELECT 1 FROM vagas WHERE status = 'reservada'"),
    Step("/vagas/{shift}", "vaga.liberar", WHY, "SELECT 1 FROM vagas WHERE id = '{shift}' AND status <> 'reservada'"),
    Step("/vagas/{shift}", "vaga.cancelar", {"motivo": "outro"}, "SELECT 1 FROM vagas WHERE status = 'cancelada'"),
    Step("/chips", "chip.pausar", WHY, "SELECT 1 FROM chips WHERE status = 'paused'"),
    Step("/chips", "chip.ativar", WHY, "SELECT 1 FROM chips WHERE status = 'active'"),
    Step("/telegram", "telegram.pausar", {}, "SELECT 1 FROM telegram_contas WHERE estado = 'pausada'", "telegram.conta"),
    Step("/telegram", "telegram.retomar", {}, "SELECT 1 FROM telegram_contas WHERE estado = 'ativa'", "telegram.conta"),
)  # fmt: skip


async def prepare(desk: Desk) -> dict[str, str]:
    """Add a record for every page. Return the ids that replace the placeholders in page addresses, by placeholder."""
    painel = desk.painel
    await painel.offers(2)
    talk = await talk_with(painel, 77)
    await write(
        painel.database,
        "INSERT INTO pendencias (id, quem, provider_message_id, motivo, ultima_em, created_at)"
        " VALUES (:id, 'x', 'x', 'sem_resposta', :now, :now)",
        id=PENDING,
        now=painel.clock.now(),
    )
    doctor = await add_doctor(painel.database, "5511900000099", now=painel.clock.now())
    await add_chip(painel.database, "julia-sim")
    await painel.julia.telegram.contas.adicionar("principal", by="ana")
    return {
        "talk": talk,
        "campaign": str(await campaign(painel)),
        "shift": await created(painel),
        "doctor": str(doctor),
    }


@pytest.mark.parametrize("view", VIEWS, ids=str)
async def test_pages_have_no_fault(desk: Desk, view: View) -> None:
    known, found = await prepare(desk), dict[str, list[str]]()
    page = await desk.sign_in("/chips", **view.options)
    for path in (*LISTS, *MORE) if IS_FULL else FEW:
        answer = await page.goto(f"{desk.address}/painel{path.format(**known)}")
        faults = await faults_of(page, answer, view)
        found |= {path: faults} if faults else {}
        if view.script and (serious := await serious_of(page)):
            found[f"{path}, axe"] = serious
    assert found == {}


@pytest.mark.parametrize("view", VIEWS if IS_FULL else VIEWS[:1], ids=str)
async def test_an_upload_shows_its_progress_and_keeps_the_file_after_a_refusal(desk: Desk, view: View) -> None:
    page = await desk.sign_in("/agendamentos", **view.options)
    await page.locator('a[data-action][href*="agendamentos.importar"]').click()
    file: Any = {"name": "lista.csv", "mimeType": "text/csv", "buffer": SHEET.replace("Data", "Quando").encode()}
    await page.locator("input[type=file]").set_input_files(files=[file])
    if view.script:
        await page.evaluate(REMEMBER_BAR)
    await page.locator(".sheet button.main").click()
    await expect(page.locator(".sheet .refused")).to_be_visible()
    await expect(page.locator(".sheet textarea")).to_have_value(re.compile("Quando=data"))
    if view.script:
        assert await page.evaluate("window.bar?.querySelector('[role=status]').textContent !== ''")
        assert await page.evaluate("document.querySelector('input[type=file]').files.length") == 1
    else:
        await page.locator("input[type=file]").set_input_files(files=[file])
    await page.locator(".sheet button.main").click()
    await expect(page.locator("#resultado")).to_be_visible()
    assert (await one(desk.painel.database, "SELECT imported FROM importacoes"))["imported"] == 1
    assert await desk.painel.audit("access.import")


@pytest.mark.skipif(not IS_FULL, reason="MATRIX=full performs every action in every view")
@pytest.mark.parametrize("view", VIEWS, ids=str)
async def test_every_action_changes_its_row_and_leaves_an_entry(desk: Desk, view: View) -> None:
    known = await prepare(desk)
    page = await desk.sign_in("/chips", **view.options)
    for step in STEPS:
        await take(page, desk, step, known)


async def take(page: Page, desk: Desk, step: Step, known: dict[str, str]) -> None:
    await page.goto(f"{desk.address}/painel{step.page.format(**known)}")
    fields = {name: value.format(**known) for name, value in step.fields.items()}
    assert await perform(page, step.action, fields)
    assert await desk.painel.audit(step.audit or step.action), step.action
    assert await rows(desk.painel.database, step.rows.format(**known)), step
    await desk.painel.clock.advance(timedelta(seconds=1))
