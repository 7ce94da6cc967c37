"""The dashboard in a real browser: its scripts, layout, focus and contrast."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Literal

import pytest
from playwright.async_api import Browser, BrowserContext, Page, Request, Response, expect

from batuta.processes.address import listen
from batuta.web.api import serve
from tests.engine.web.browser.panel import MINUTE, STATES, Panel, open_panel

PAGES = (
    "/painel",
    "/painel/tarefas",
    "/painel/tarefas/broken",
    "/painel/execucoes",
    "/painel/execucoes/{id}",
    "/painel/filas",
    "/painel/processos",
    "/painel/freios",
    "/painel/incidentes",
    "/painel/auditoria",
    "/painel/acoes/pause?alvo=job:broken",
)
DESK = {"width": 1440, "height": 900}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


@dataclass
class Dashboard:
    """The dashboard on a local port, and the errors that the browser has reported."""

    panel: Panel
    address: str
    browser: Browser
    complaints: list[str] = field(default_factory=list)

    async def visit(self, path: str, **options: object) -> Page:
        context: BrowserContext = await self.browser.new_context(**{"locale": "pt-BR", "viewport": DESK, **options})  # type: ignore[arg-type]
        page = await context.new_page()
        page.on(
            "console", lambda said: self.complaints.append(said.text) if said.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        await page.goto(self.address + path)
        return page


@pytest.fixture
async def dashboard(tmp_path: Path, work_url: str, browser: Browser) -> AsyncIterator[Dashboard]:
    panel = await open_panel(tmp_path, work_url)
    listening = listen("127.0.0.1", 0)
    stop = asyncio.Event()
    serving = asyncio.create_task(serve(panel.api, listening, stop, timedelta(seconds=1)))
    opened = Dashboard(panel, f"http://127.0.0.1:{listening.getsockname()[1]}", browser)
    yield opened
    for context in browser.contexts:
        await context.close()
    stop.set()
    await serving
    await panel.work.close()
    assert opened.complaints == []


async def test_page_shows_every_job_and_typing_filters_them(dashboard: Dashboard) -> None:
    page = await dashboard.visit("/painel/tarefas")
    rows = page.locator("tr[data-text]:visible")
    await expect(rows).to_have_count(len(STATES))
    await page.keyboard.press("/")
    await page.keyboard.type("BRÓKEN")
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("broken")
    await expect(page.locator("output")).to_have_text(f"1 de {len(STATES)}")
    await expect(page).to_have_url(f"{dashboard.address}/painel/tarefas?q=BR%C3%93KEN")
    await page.reload()  # the filter is in the address
    await expect(rows).to_have_count(1)
    await page.get_by_text("Limpar").click()
    await expect(rows).to_have_count(len(STATES))
    await page.locator("select[name=categoria]").select_option("sync")
    await expect(rows).to_have_count(3)


async def test_escape_clears_the_search_and_its_filter(dashboard: Dashboard) -> None:
    page = await dashboard.visit("/painel/tarefas")
    rows = page.locator("tr[data-text]:visible")
    await page.keyboard.press("/")
    await page.keyboard.type("broken")
    await expect(rows).to_have_count(1)
    await page.keyboard.press("Escape")
    await expect(rows).to_have_count(len(STATES))
    assert "q=" not in page.url


async def test_an_empty_live_part_leaves_no_gap_and_keys_are_shown_as_typed(dashboard: Dashboard) -> None:
    @dashboard.panel.work.task()
    async def send() -> None: ...

    page = await dashboard.visit("/painel/filas/default")
    tabs, items = await page.locator("#estados").bounding_box(), await page.locator("#itens").bounding_box()
    assert tabs is not None
    assert items is not None
    assert items["y"] - tabs["y"] - tabs["height"] <= 20
    first = "getComputedStyle(document.querySelector('#teclas dt'), '::first-letter').textTransform"
    assert await page.evaluate(first) == "none"


async def test_filter_is_a_form_without_a_script(dashboard: Dashboard) -> None:
    page = await dashboard.visit("/painel/tarefas", java_script_enabled=False)
    await page.get_by_role("searchbox").fill("broken")
    await page.get_by_role("button", name="Filtrar").click()
    await expect(page.locator("tr[data-text]:visible")).to_have_count(1)


async def test_first_tab_offers_a_skip_link_and_the_focus_is_visible(dashboard: Dashboard) -> None:
    page = await dashboard.visit("/painel/tarefas")
    await page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Ir para o conteúdo")
    await expect(skip).to_be_focused()
    await expect(skip).to_be_in_viewport()
    await page.keyboard.press("Enter")
    await expect(page.locator("main")).to_be_focused()
    await page.keyboard.press("Tab")
    outline = await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    assert await page.evaluate("document.activeElement.closest('main') !== null")


# Selects tables that are wider than their card.
STICKS_OUT = """[...document.querySelectorAll("main table")].filter(
    (each) => each.getBoundingClientRect().right > each.closest("section").getBoundingClientRect().right + 1
).map((each) => each.className)"""


async def test_pages_on_a_phone_do_not_scroll_sideways_and_both_themes_are_readable(dashboard: Dashboard) -> None:
    id = await dashboard.panel.keep("broken", MINUTE, "error", error="x" * 400, result={"key": "y" * 400})
    await dashboard.panel.keep("planned_for_a_day_nobody_knows", MINUTE, "timeout", reason="z" * 400)
    page = await dashboard.visit(PAGES[0])
    for path in PAGES:
        await page.goto(dashboard.address + path.format(id=id))
        for scheme in SCHEMES:
            await page.emulate_media(color_scheme=scheme)
            for width in (390, 1024, 1280, 1440):
                await page.set_viewport_size({"width": width, "height": 900})
                assert await page.evaluate("document.documentElement.scrollWidth") <= width, (path, scheme)
                assert await page.evaluate(STICKS_OUT) == [], (path, width)
                assert await page.evaluate(CONTRAST) == [], (path, scheme)


async def test_refresh_replaces_changes_in_place_and_keeps_the_state_of_the_page(dashboard: Dashboard) -> None:
    page = await dashboard.visit("/painel/tarefas")
    await page.clock.install()
    await page.reload()
    await page.get_by_role("searchbox").fill("broken")
    await page.locator("#tarefa-broken").focus()
    await dashboard.panel.keep("broken", MINUTE)
    await page.clock.run_for(25_000)
    await expect(page.locator("#linha-broken .pill")).to_have_text("em dia")
    await expect(page.locator("#tarefa-broken")).to_be_focused()
    await expect(page.locator("tr[data-text]:visible")).to_have_count(1)


async def test_changes_are_pushed_and_a_hidden_tab_follows_nothing(dashboard: Dashboard) -> None:
    live = dashboard.panel.api.state.batuta.live
    await live.tick()
    page = await dashboard.visit("/painel/processos")

    def is_stream(message: Response | Request) -> bool:
        request = message if isinstance(message, Request) else message.request
        return request.headers.get("accept") == "text/event-stream"

    async with page.expect_response(is_stream):
        await page.goto(f"{dashboard.address}/painel/tarefas")
    await page.get_by_role("searchbox").fill("broken")
    await dashboard.panel.keep("broken", MINUTE)
    live.refresh()
    await live.tick()
    await expect(page.locator("#linha-broken .pill")).to_have_text("em dia")
    await expect(page.locator("tr[data-text]:visible")).to_have_count(1)
    async with page.expect_event("requestfailed", is_stream):
        await page.evaluate(
            "Object.defineProperty(document, 'hidden', { value: true }); document.dispatchEvent(new Event('visibilitychange'))"
        )


async def test_silent_server_is_reported_and_the_page_stays(dashboard: Dashboard) -> None:
    page = await dashboard.visit("/painel/tarefas")
    await page.clock.install()
    await page.reload()
    await page.route("**/painel/tarefas", lambda route: route.abort())
    await page.clock.run_for(25_000)
    await expect(page.get_by_text("O servidor não responde")).to_be_visible()
    await expect(page.locator("tr[data-text]:visible")).to_have_count(len(STATES))
    await page.unroute("**/painel/tarefas")
    await page.clock.run_for(16_000)  # shorter than the timeout of a request
    await expect(page.get_by_text("O servidor não responde")).to_be_hidden()
    dashboard.complaints.clear()  # the browser logs the failed request


async def test_refreshing_can_be_paused(dashboard: Dashboard) -> None:
    page = await dashboard.visit("/painel/tarefas")
    await page.clock.install()
    await page.reload()
    await page.get_by_role("button", name="Pausar atualização").click()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.clock.run_for(90_000)
    assert asked == []
    await page.get_by_role("button", name="Retomar atualização").click()
    async with page.expect_request("**/painel/tarefas"):
        await page.clock.run_for(1_000)


# Finds text whose contrast with its background is below 4.5 to 1.
CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const pixel = (colours) => {
    canvas.clearRect(0, 0, 1, 1);
    for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (rgb) => {
    const linear = (each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = rgb.map((each) => linear(each / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const poor = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.textContent.trim() || !element.checkVisibility()) continue;
    if (element.closest("svg, .unseen, .skip, option")) continue;
    const behind = [];
    for (let each = element; each; each = each.parentElement) behind.unshift(getComputedStyle(each).backgroundColor);
    const [paper, ink] = [light(pixel(behind)), light(pixel([...behind, getComputedStyle(element).color]))];
    const contrast = (Math.max(paper, ink) + 0.05) / (Math.min(paper, ink) + 0.05);
    if (contrast < 4.5) poor.push(`${texts.currentNode.textContent.trim()}: ${contrast.toFixed(2)}`);
  }
  return poor;
}"""


async def test_a_phone_shows_the_clock_and_lists_every_page(dashboard: Dashboard) -> None:
    page = await dashboard.visit("/painel/tarefas", viewport={"width": 390, "height": 844})
    await expect(page.locator("#agora")).to_be_visible()
    cut = (
        "each => each.filter((pill) => pill.getBoundingClientRect().right > innerWidth).map((pill) => pill.textContent)"
    )
    assert await page.locator(".jobs .pill, .jobs td small").evaluate_all(cut) == []
    await page.locator("#menu").click()
    await expect(page.locator("#paginas li").last).to_be_visible()
    dashboard.panel.work.task(name="send")(_send)
    wide = await dashboard.visit("/painel/filas/default")
    await expect(wide.locator("#menu")).to_be_hidden()
    assert await wide.locator("#estados").evaluate("each => getComputedStyle(each).overflowY") == "hidden"


async def _send(to: str) -> None: ...
