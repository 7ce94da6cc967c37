"""Take the screenshots for the documents: `python -m scripts.screenshots`. This takes about two minutes and needs
Chromium.

The screenshots show real pages. `jobs.png` and `tokens.png` show the first program in the README after the engine has
run its jobs on a fake clock for a day. The other screenshots show Julia as `make run` starts it. Everything runs on
127.0.0.1 with temporary databases.
"""

import asyncio
import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
from playwright.async_api import Browser, async_playwright

from batuta import Batuta
from batuta.access import UserRole, mint
from batuta.testing import FakeClock
from examples.shop import report_sales

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
LARGEST = 250_000
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
# Wait until the demonstration has sent and received its first messages.
DEMONSTRATION = timedelta(seconds=75)


async def record_a_day(url: str, now: datetime) -> None:
    """Run the jobs of the README's program on a fake clock, minute by minute, up to now."""
    clock = FakeClock((now - DAY).replace(second=0, microsecond=0))
    work = Batuta(url, timezone="UTC", clock=clock)
    work.job("*/15 * * * *", category="reports")(report_sales)
    async with work:
        scheduler = work.scheduler()
        for _ in range(int(DAY / MINUTE)):
            for loop, _ in scheduler.loops():
                await loop.tick()
            await clock.advance(MINUTE)
        for name, role in (("grafana", UserRole.READER), ("ana", UserRole.OPERATOR), ("rui", UserRole.ADMIN)):
            lasts = None if role is UserRole.READER else 90 * DAY
            expires = None if lasts is None else clock.now() + lasts
            token, _ = mint(name, role.scopes, by="root", now=clock.now(), chance=secrets.token_hex, expires_at=expires)
            await work.tokens.keep(token)


def start(*arguments: str, folder: Path, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "batuta", *arguments]
    whole = {**os.environ, "PYTHONPATH": str(ROOT), **env}
    return subprocess.Popen(command, cwd=folder, env=whole, stdout=subprocess.DEVNULL)


async def wait_until_ready(port: int) -> None:
    async with httpx2.AsyncClient() as client:
        for _ in range(600):
            with contextlib.suppress(httpx2.HTTPError):
                if (await client.get(f"http://127.0.0.1:{port}/health/ready")).status_code == 200:
                    return
            await asyncio.sleep(0.2)
    raise SystemExit(f"screenshots: `batuta up` does not answer on port {port}: start it by hand and read its log")


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    program = os.environ.get("BATUTA_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        raise SystemExit("screenshots: no Chromium found: install it, or set BATUTA_CHROMIUM to its program")
    async with async_playwright() as driver:
        arguments = [] if os.geteuid() else ["--no-sandbox"]
        browser = await driver.chromium.launch(executable_path=program, args=arguments)
        yield browser
        await browser.close()


async def picture(browser: Browser, address: str, name: str, *, locale: str, height: int = 900) -> None:
    page = await browser.new_page(
        viewport={"width": 1280, "height": height}, color_scheme="light", locale=locale, reduced_motion="reduce"
    )
    answer = await page.goto(address)
    if answer is None or not answer.ok:
        raise SystemExit(f"screenshots: {address} answers {answer and answer.status}: open it and read the log")
    file = PICTURES / name
    await page.screenshot(path=file)
    await page.close()
    size = file.stat().st_size
    print(f"{file.relative_to(ROOT)} {size // 1000} kB")
    if size > LARGEST:
        raise SystemExit(f"screenshots: {name} is larger than {LARGEST // 1000} kB: lower its height")


async def draw_shop(browser: Browser, folder: Path) -> None:
    await record_a_day(f"sqlite:///{folder}/shop.db", datetime.now(UTC))
    env = {"PORT": "8771", "BATUTA_LANG": "en", "TZ": "UTC", "APP_ENV": "development"}
    process = start("--app", "examples.shop:work", "up", folder=folder, env=env)
    try:
        await wait_until_ready(8771)
        await asyncio.sleep(20)  # until every process has shown its first heartbeat
        await picture(browser, "http://127.0.0.1:8771/painel", "jobs.png", locale="en-US", height=780)
        await picture(browser, "http://127.0.0.1:8771/painel/tokens", "tokens.png", locale="en-US", height=640)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


async def draw_julia(browser: Browser, folder: Path) -> None:
    files = {"DATABASE_URL": f"sqlite:///{folder}/julia.db", "OPTOUT_JOURNAL": f"{folder}/journal"}
    demo = {"DEMO": "1", "APP_ENV": "development"}
    process = start(
        "up",
        folder=ROOT,
        env={"PORT": "8772", "SIMULADOR_PORT": "8773", "TELEGRAM_SIMULADOR_PORT": "8774", **demo, **files},
    )
    try:
        await wait_until_ready(8772)
        await asyncio.sleep(DEMONSTRATION.total_seconds())
        await picture(browser, "http://127.0.0.1:8772/painel", "julia.png", locale="en-US", height=1000)
        await picture(browser, "http://127.0.0.1:8772/painel/execucoes", "julia-runs.png", locale="pt-BR", height=700)
        await picture(browser, "http://127.0.0.1:8772/painel/conversas", "julia-talks.png", locale="pt-BR", height=560)
        await picture(browser, "http://127.0.0.1:8772/painel/revisao", "julia-review.png", locale="pt-BR", height=860)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


async def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="batuta-pictures-") as folder:
        async with chromium() as browser:
            await draw_shop(browser, Path(folder))
            await draw_julia(browser, Path(folder))


if __name__ == "__main__":
    asyncio.run(main())
