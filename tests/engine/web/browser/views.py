"""The views of a page (language, theme, width, with or without JavaScript), and a check for faults of a page in each
view.

`make test` uses two of the sixteen views and a few pages. With ``MATRIX=full``, `python3 dev.py matrix` opens every
page and performs every action in every view.
"""

import gzip
import hashlib
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from playwright.async_api import Page, Response, expect

from tests.conftest import lack
from tests.engine.web.browser.test_panel import CONTRAST, STICKS_OUT

IS_FULL = os.environ.get("MATRIX") == "full"
LARGEST_PAGE = 30_000  # largest size of a page in bytes, gzipped
AXE, AXE_HASH = "4.11.0", "e9e5863c33a874f09bc01acd9234b7e3c871479f5eef8802fa582544465e6d01"
# Matches the key of a missing text, which a page would show instead of the text.
KEY = re.compile(r"\b(?:panel|tela|estado|cli|quadro|grupos)\.[a-z_]+\.[a-z_]+\b")


class View(NamedTuple):
    language: str
    theme: str
    width: int
    script: bool

    @property
    def options(self) -> dict[str, Any]:
        return {
            "locale": self.language,
            "color_scheme": self.theme,
            "viewport": {"width": self.width, "height": 900},
            "java_script_enabled": self.script,
        }

    def __str__(self) -> str:
        return f"{self.language}-{self.theme}-{self.width}-{'script' if self.script else 'plain'}"


EVERY = tuple(View(*each) for each in product(("pt-BR", "en"), ("light", "dark"), (1360, 390), (True, False)))
SOME = (View("pt-BR", "light", 1360, True), View("en", "dark", 390, False))
VIEWS = EVERY if IS_FULL else SOME


async def faults_of(page: Page, answer: Response | None, view: View) -> list[str]:
    """Return the faults of the page that is open in the browser."""
    if answer is None or answer.status != 200:
        return [f"status {answer and answer.status}"]
    html = await answer.text()
    size = len(gzip.compress(html.encode()))
    found = [f"{size} bytes gzipped"] if size > LARGEST_PAGE else []
    found += [f"text without a translation: {key}" for key in set(KEY.findall(await page.locator("main").inner_text()))]
    if (width := await page.evaluate("document.documentElement.scrollWidth")) > view.width:
        found.append(f"{width} pixels wide")
    found += [f"table sticks out: {each}" for each in await page.evaluate(STICKS_OUT)]
    found += [f"contrast: {each}" for each in await page.evaluate(CONTRAST)]
    language = await page.evaluate("document.documentElement.lang")
    return [*found, *([] if language == view.language else [f"language {language}"])]


async def serious_of(page: Page) -> list[str]:
    """Return the serious and critical findings that axe-core reports."""
    await page.evaluate(axe_source())
    found = await page.evaluate("axe.run({ resultTypes: ['violations'] }).then((each) => each.violations)")
    return [
        f"{each['id']}: {each['nodes'][0]['html'][:160]} ({len(each['nodes'])} times)"
        for each in found
        if each["impact"] in ("serious", "critical")
    ]


@cache
def axe_source() -> str:
    """Return the source code of axe-core. npm downloads it once into a cache outside the repository."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "batuta"
    file = folder / f"axe-core-{AXE}.js"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_load_axe())
    source = file.read_bytes()
    assert hashlib.sha256(source).hexdigest() == AXE_HASH, f"{file} is not the published file: delete it"
    return source.decode()


def _load_axe() -> bytes:
    npm = shutil.which("npm")
    if npm is None:
        lack("npm", "install it (Debian: apt install npm): it loads axe-core, which checks the accessibility of pages")
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", f"axe-core@{AXE}", "--silent", "--pack-destination", folder]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode:
            lack("axe-core", f"npm cannot load it: {done.stderr.strip()[:200]}")
        with tarfile.open(next(Path(folder).glob("*.tgz"))) as package:
            content = package.extractfile("package/axe.min.js")
            assert content is not None
            return content.read()


async def perform(page: Page, name: str, fields: Mapping[str, str]) -> str:
    """Click the action's first button, fill in its form and submit it. Return the message on the page that follows."""
    await page.locator(f'main a[data-action][href*="/acoes/{name}?"]').first.click()
    form = page.locator(f'.sheet form[action$="/acoes/{name}"]')
    for field, value in fields.items():
        control = form.locator(f'[name="{field}"]')
        await (
            control.select_option(value)
            if await control.evaluate("each => each.tagName === 'SELECT'")
            else control.fill(value)
        )
    await form.locator("button.main").click()
    result = page.locator("#resultado")
    await expect(result).to_be_visible()
    return await result.inner_text()
