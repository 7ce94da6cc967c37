"""The browser that the engine's tests use, and Julia's dashboard on a local port."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page

from batuta.processes.address import listen
from batuta.testing import FakeClock
from batuta.web.api import serve
from tests.engine.web.browser.conftest import anyio_backend, browser
from tests.julia.web.painel import Painel, open_painel
from tests.julia.web.test_api import TOKEN

__all__ = ["anyio_backend", "browser"]


@dataclass
class Desk:
    painel: Painel
    address: str
    browser: Browser
    complaints: list[str] = field(default_factory=list)

    async def sign_in(self, path: str, *, script: bool = True, width: int = 1360, **options: Any) -> Page:
        """Sign in with every scope and return the opened page ``path``. The browser runs with or without JavaScript."""
        usual = {"locale": "pt-BR", "java_script_enabled": script, "viewport": {"width": width, "height": 900}}
        context = await self.browser.new_context(**{**usual, **options})
        page = await context.new_page()
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        await page.goto(f"{self.address}/painel/entrar?para=/painel{path}")
        await page.locator("#token").fill(TOKEN)
        await page.keyboard.press("Enter")
        await page.wait_for_url(lambda url: url.startswith(f"{self.address}/painel{path}"))
        return page


@pytest.fixture
async def desk(julia_url: str, browser: Browser, tmp_path: Path) -> AsyncIterator[Desk]:
    listening, stop = listen("127.0.0.1", 0), asyncio.Event()
    async with open_painel(julia_url, FakeClock(), tmp_path) as painel:
        serving = asyncio.create_task(serve(painel.api, listening, stop, timedelta(seconds=1)))
        opened = Desk(painel, f"http://127.0.0.1:{listening.getsockname()[1]}", browser)
        yield opened
        for context in browser.contexts:
            await context.close()
        stop.set()
        await serving
    assert opened.complaints == []
