"""Julia's pages in a real browser. A review works with the keyboard and without JavaScript, and no page is wider than a
phone's screen.
"""

from playwright.async_api import Page, expect

from tests.engine.web.browser.test_panel import STICKS_OUT
from tests.julia.tables import add_chip, rows, write
from tests.julia.web.browser.conftest import Desk
from tests.julia.web.test_conversas_screen import PENDING, escalate, talk_with

# The cells whose content is wider than the cell.
WIDE = """() => [...document.querySelectorAll("main td, main th, .verdict > div, .count span")]
    .filter((cell) => cell.scrollWidth > cell.clientWidth + 1 && getComputedStyle(cell).display !== "none")
    .map((cell) => cell.textContent.trim())"""
STATES = "SELECT id, status, valor FROM vagas_grupo ORDER BY created_at, id"


async def decide(page: Page, key: str, next_id: str | None) -> None:
    """Press one key, and wait until the next vacancy is shown."""
    await page.keyboard.press(key)
    if next_id is None:
        await expect(page.get_by_text("Nenhuma vaga para revisar")).to_be_visible()
    else:
        await expect(page.locator(f'form.fields input[name="vaga"][value="{next_id}"]')).to_have_count(1)


async def test_review_needs_no_mouse(desk: Desk) -> None:
    first, second, third = await desk.painel.offers(3)
    page = await desk.sign_in("/revisao")
    await expect(page.locator(".source mark.mark-1").first).to_have_text("Vila Inventada")
    await page.keyboard.press("e")
    await expect(page.locator("#campo-hospital")).to_be_focused()
    await page.locator("#campo-valor").fill("1750")
    await page.keyboard.press("Escape")
    await decide(page, "a", second)
    await page.keyboard.press("1")
    await expect(page.locator("dialog #campo-motivo")).to_be_focused()
    await decide(page, "Enter", third)
    await page.keyboard.press("r")
    await page.keyboard.type("fora do nosso estado")
    await decide(page, "Enter", None)
    stored = await rows(desk.painel.database, STATES)
    assert [(str(row["id"]), row["status"]) for row in stored] == [
        (first, "importada"),
        (second, "rejeitada"),
        (third, "rejeitada"),
    ]
    assert stored[0]["valor"] == 1750
    assert len(await desk.painel.audit("vaga_grupo.")) == 3


async def test_approval_of_an_incomplete_vacancy_focuses_the_missing_field(desk: Desk) -> None:
    await desk.painel.offers(1)
    await write(desk.painel.database, "UPDATE vagas_grupo SET hospital_id = NULL, hospital_raw = NULL")
    page = await desk.sign_in("/revisao")
    await page.keyboard.press("a")
    field = page.locator("#campo-hospital")
    await expect(field).to_be_focused()
    assert await field.evaluate("field => field.validationMessage") == "Falta o hospital"
    assert page.url.endswith("/painel/revisao")
    await field.fill("Vila Inventada")
    assert await field.evaluate("field => field.checkValidity()")


async def test_review_works_without_javascript(desk: Desk) -> None:
    first, second = await desk.painel.offers(2)
    page = await desk.sign_in("/revisao", script=False)
    await page.get_by_role("button", name="Aprovar").click()
    await expect(page.locator(f'form.fields input[name="vaga"][value="{second}"]')).to_have_count(1)
    await expect(page.get_by_role("status").filter(has_text="batuta grupos aprovar")).to_contain_text(first)


async def test_every_page_fits_a_telephone(desk: Desk) -> None:
    await desk.painel.offers(1)
    page = await desk.sign_in("/revisao", width=390)
    for screen in desk.painel.julia.work.extension.screens:
        if screen.in_navigation:
            await page.goto(f"{desk.address}/painel{screen.path}")
            assert await page.evaluate("document.documentElement.scrollWidth") <= 390, screen.path


async def test_the_longest_state_of_a_conversation_fits_every_width(desk: Desk) -> None:
    talk = await talk_with(desk.painel, 77)
    await escalate(desk.painel, talk)
    await write(
        desk.painel.database,
        "INSERT INTO pendencias (id, quem, conversa_id, provider_message_id, motivo, ultima_em, created_at)"
        " VALUES (:id, 'x', :talk, 'x', 'pede_pessoa', :now, :now)",
        id=PENDING,
        talk=talk,
        now=desk.painel.clock.now(),
    )
    for width in (1280, 390):
        page = await desk.sign_in("/conversas", width=width)
        await expect(page.locator("main .pill").first).to_contain_text("o médico pediu")
        assert await page.evaluate(STICKS_OUT) == [], width
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        assert await page.evaluate(WIDE) == [], width


async def test_figures_and_words_fit_their_cells_on_a_telephone(desk: Desk) -> None:
    await add_chip(desk.painel.database)
    await write(desk.painel.database, "UPDATE chips SET trust_score = 100, trust_level = 'verde'")
    page = await desk.sign_in("/chips", width=390)
    for path in ("/chips", "/filas", "/tarefas", ""):
        await page.goto(f"{desk.address}/painel{path}")
        assert await page.evaluate(WIDE) == [], path
    sentence, score = page.locator(".verdict .sentence"), page.locator(".verdict .score")
    above, below = await sentence.bounding_box(), await score.bounding_box()
    assert above is not None
    assert below is not None
    assert below["y"] >= above["y"] + above["height"]  # the score leaves the whole width to the sentence
