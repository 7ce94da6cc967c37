"""A real browser, the machine's Chromium, which the tests control through Playwright."""

import os
import shutil
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, async_playwright, expect

from tests.conftest import lack

# On a busy machine a page may take longer than the default timeout of five seconds.
expect.set_options(timeout=60_000)
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="package")
def anyio_backend() -> str:
    """Use one event loop for all tests in this folder, because they share a browser that belongs to one loop."""
    return "asyncio"


@pytest.fixture(scope="package")
async def browser(anyio_backend: str) -> AsyncIterator[Browser]:
    """Share one browser among all tests in this folder, because starting one takes a second of processor time. Each
    test opens its own pages.
    """
    program = os.environ.get("BATUTA_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        lack("Chromium", "install it (Debian: apt install chromium), or set BATUTA_CHROMIUM to its program")
    sandbox = [] if os.geteuid() else ["--no-sandbox"]  # as root, Chromium refuses to run with its sandbox
    # Without a graphics card and with one process for all pages, a page takes a tenth less processor time.
    lean = ["--disable-gpu", "--disable-software-rasterizer", "--renderer-process-limit=1"]
    async with async_playwright() as driver:
        opened = await driver.chromium.launch(executable_path=program, args=[*sandbox, *lean])
        yield opened
        await opened.close()
