"""The login page in a real browser, in production mode. Users log in with a token and log out with a button, both
without JavaScript.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from playwright.async_api import Browser, Page, expect

from batuta.access import SESSION_LENGTH
from batuta.config import EngineSettings, load_settings
from batuta.engine.batuta import Batuta
from batuta.processes.address import listen
from batuta.testing import FakeClock
from batuta.web import create_api
from batuta.web.api import serve
from tests.engine.dispatch.scheduling import Endpoint

TOKEN = "browser-token-" + "x" * 20


@dataclass
class Door:
    address: str
    browser: Browser
    clock: FakeClock
    complaints: list[str] = field(default_factory=list)

    async def visit(self, path: str, *, script: bool = True, width: int = 1440) -> Page:
        size = {"width": width, "height": 900}
        context = await self.browser.new_context(locale="pt-BR", java_script_enabled=script, viewport=size)  # type: ignore[arg-type]
        page = await context.new_page()
        page.on("console", lambda said: self.complaints.append(said.text) if "401" not in said.text else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        await page.goto(self.address + path)
        return page


@pytest.fixture
async def door(work_url: str, browser: Browser) -> AsyncIterator[Door]:
    clock = FakeClock()
    work = Batuta(work_url, clock=clock)
    work.add_job("pulse", "* * * * *", Endpoint(), "critico")
    env = {"APP_ENV": "production", "API_TOKEN": TOKEN, "SECRET_KEY": "k" * 32, "DATABASE_URL": work_url}
    listening, stop = listen("127.0.0.1", 0), asyncio.Event()
    async with work:
        api = create_api(work, load_settings(EngineSettings, env), service="casa")
        serving = asyncio.create_task(serve(api, listening, stop, timedelta(seconds=1)))
        opened = Door(f"http://127.0.0.1:{listening.getsockname()[1]}", browser, clock)
        yield opened
        for context in browser.contexts:
            await context.close()
        stop.set()
        await serving
    assert opened.complaints == []


async def sign_in(page: Page, token: str = TOKEN) -> None:
    await page.get_by_label("Token de acesso").fill(token)
    await page.get_by_role("button", name="Entrar").click()


@pytest.mark.parametrize("script", [True, False])
async def test_login_returns_to_the_requested_page_and_logout_ends_the_session(door: Door, script: bool) -> None:
    page = await door.visit("/painel/execucoes?situacao=error", script=script)
    await expect(page).to_have_title("Entrar · casa")
    await expect(page.get_by_label("Token de acesso")).to_be_focused()
    await sign_in(page)
    await expect(page).to_have_url(f"{door.address}/painel/execucoes?situacao=error")
    (cookie,) = [each for each in await page.context.cookies() if each["name"] == "__Host-batuta_session"]
    assert (cookie["httpOnly"], cookie["secure"], cookie["sameSite"]) == (True, True, "Strict")
    await page.goto(f"{door.address}/docs")
    await expect(page.get_by_text("/jobs/{endpoint}").first).to_be_visible()
    await page.goto(f"{door.address}/painel")
    await page.get_by_role("button", name="Sair").click()
    await expect(page).to_have_url(f"{door.address}/painel/entrar")
    await page.goto(f"{door.address}/painel")
    await expect(page).to_have_title("Entrar · casa")


async def test_wrong_token_is_explained_in_the_language_of_the_reader_and_cleared(door: Door) -> None:
    page = await door.visit("/painel")
    await sign_in(page, "wrong-token")
    await expect(page.get_by_role("alert")).to_contain_text("não existe")
    await expect(page.get_by_label("Token de acesso")).to_have_value("")
    await page.get_by_role("link", name="en").click()
    await expect(page).to_have_title("Sign in · casa")
    await page.get_by_label("Access token").fill(TOKEN)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("button", name="Sign out")).to_be_visible()


async def test_open_page_goes_to_the_login_when_the_session_expires(door: Door) -> None:
    page = await door.visit("/painel")
    await sign_in(page)
    await expect(page.get_by_role("button", name="Sair")).to_be_visible()
    await door.clock.advance(SESSION_LENGTH.total_seconds() + 1)
    await page.evaluate("document.body.dataset.refresh && (Date.now = ((real) => () => real() + 60_000)(Date.now))")
    await expect(page).to_have_title("Entrar · casa")


@pytest.mark.parametrize("width", [360, 1440])
async def test_login_and_logout_fit_the_screen(door: Door, width: int) -> None:
    page = await door.visit("/painel/entrar", width=width)
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await sign_in(page)
    await expect(page.get_by_role("button", name="Sair")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@asynccontextmanager
async def evil(html: str) -> AsyncIterator[str]:
    """Serve a page from another site, and yield its address. A browser treats ``localhost`` and ``127.0.0.1`` as two
    sites. A site outside this machine would not do, because the browser itself refuses such requests whatever the
    program answers.
    """

    html = f"<link rel=icon href='data:,'>{html}"

    async def serve_page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(html)}\r\nConnection: close\r\n\r\n"
        writer.write((head + html).encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve_page, "127.0.0.1", 0)
    async with server:
        yield f"http://localhost:{server.sockets[0].getsockname()[1]}/"


async def test_page_of_another_site_cannot_show_the_dashboard_in_a_frame(door: Door) -> None:
    page = await door.visit("/painel")
    await sign_in(page)
    await expect(page.get_by_role("button", name="Sair")).to_be_visible()
    frames = f"<iframe src='{door.address}/painel'></iframe><iframe src='{door.address}/painel/entrar'></iframe>"
    async with evil(frames) as address:
        await page.goto(address)
        shown = [each for each in page.frames if each is not page.main_frame]
        for each in shown:  # a refused frame gets its address after the page itself has loaded
            await each.wait_for_url("chrome-error://chromewebdata/")
        assert len(shown) == 2
    door.complaints.clear()  # the browser names the refused frames


async def test_page_of_another_site_cannot_act_for_a_signed_in_person(door: Door) -> None:
    page = await door.visit("/painel")
    await sign_in(page)
    await expect(page.get_by_role("button", name="Sair")).to_be_visible()
    form = (
        f"<form method=post action='{door.address}/painel/sair'><input name=csrf value=x><button>Clique</button></form>"
    )
    async with evil(form) as address:
        await page.goto(address)
        read = f"fetch('{door.address}/jobs', {{credentials: 'include'}}).then(() => 'read', () => 'refused')"
        assert await page.evaluate(read) == "refused"
        async with page.expect_request(f"{door.address}/painel/sair") as sent:
            await page.get_by_role("button", name="Clique").click()
        assert "cookie" not in await (await sent.value).all_headers()
    await page.goto(f"{door.address}/painel")
    await expect(page.get_by_role("button", name="Sair")).to_be_visible()  # the session continues
    door.complaints.clear()  # the browser names the refused request


async def test_sign_out_ends_the_session_in_every_window_and_for_a_copied_cookie(door: Door) -> None:
    page = await door.visit("/painel")
    await sign_in(page)
    await expect(page.get_by_role("button", name="Sair")).to_be_visible()
    cookies = [each for each in await page.context.cookies() if each["name"] == "__Host-batuta_session"]
    other = await page.context.new_page()
    await other.goto(f"{door.address}/painel/tarefas")
    copied = await door.browser.new_context(locale="pt-BR")
    kept = [
        {"name": each["name"], "value": each["value"], "url": door.address.replace("http:", "https:")}
        for each in cookies
    ]
    await copied.add_cookies(kept)  # type: ignore[arg-type]
    stolen = await copied.new_page()
    await stolen.goto(f"{door.address}/painel")
    await expect(stolen.get_by_role("button", name="Sair")).to_be_visible()
    await page.get_by_role("button", name="Sair").click()
    await expect(page).to_have_url(f"{door.address}/painel/entrar")
    for window in (other, stolen):
        await window.goto(f"{door.address}/painel")
        await expect(window).to_have_title("Entrar · casa")
