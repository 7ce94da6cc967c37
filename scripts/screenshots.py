"""Take the screenshots of the documents: `python -m scripts.screenshots`, about two minutes, needs Chromium.

The screenshots show real pages. `jobs.png` is a small shop whose last day the engine ran on a fake clock; the others
show Julia as `make run` starts it. Everything runs on 127.0.0.1 with temporary databases.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
from playwright.async_api import Browser, async_playwright

from batuta import Batuta, Done, Failed, Partial, Run, Skipped
from batuta.kernel import Clock
from batuta.testing import FakeClock

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
LARGEST = 250_000
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
# Time until the demonstration has sent and received its first messages.
DEMONSTRATION = timedelta(seconds=75)


def shop(clock: Clock | None = None) -> Batuta:
    """Return a program with a job in each of the states that the page distinguishes."""
    work = Batuta(os.environ["SHOP_URL"], timezone="UTC", clock=clock)

    @work.job("*/15 * * * *", category="reports")
    async def report_sales(run: Run) -> Done:
        await work.clock.sleep(2.4)
        return Done(items=42)

    @work.job("*/5 * * * *", category="sync", critical=True)
    async def import_orders() -> Done:
        await work.clock.sleep(1.1)
        return Done(items=7)

    @work.job("*/10 * * * *", category="sync")
    async def update_stock(run: Run) -> Done | Partial:
        await work.clock.sleep(3.2)
        return (
            Done(items=120)
            if (run.execution.scheduled_for or work.clock.now()).hour % 5
            else Partial("3 of 120 products were locked", items=117)
        )

    @work.job("0 * * * *", category="mail")
    async def send_newsletter() -> Skipped:
        return Skipped("no new issue")

    @work.job("*/20 * * * *", category="payments")
    async def settle_payments() -> Done | Failed:
        await work.clock.sleep(1.9)
        broken = work.clock.now() > datetime.fromisoformat(os.environ["SHOP_BROKEN_SINCE"])
        return Failed("the bank answered 503") if broken else Done(items=5)

    @work.job("30 2 * * *", category="upkeep")
    def rotate_backups() -> int:
        return 3

    @work.job("0 7 * * 1", category="reports")
    def report_week() -> int:
        return 1

    return work


async def record_a_day(now: datetime) -> None:
    """Run the shop's scheduler for one day up to ``now``, on a clock that the loop moves minute by minute."""
    clock = FakeClock((now - DAY).replace(second=0, microsecond=0))
    async with shop(clock) as work:
        scheduler = work.scheduler()
        for _ in range(int(DAY / MINUTE)):
            for loop, _ in scheduler.loops():
                await loop.tick()
            await clock.advance(MINUTE)
        await work.switches.set(
            "pause.job.send_newsletter", True, by="ana", reason="new template", now=clock.now(), until=now + DAY
        )


def start(*arguments: str, **env: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "batuta", *arguments]
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, **env}, stdout=subprocess.DEVNULL)


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
        viewport={"width": 1200, "height": height}, color_scheme="light", locale=locale, reduced_motion="reduce"
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
    os.environ["SHOP_URL"] = f"sqlite:///{folder}/shop.db"
    os.environ["SHOP_BROKEN_SINCE"] = (datetime.now(UTC) - 3 * HOUR).isoformat()
    await record_a_day(datetime.now(UTC))
    app = ("--app", "scripts.screenshots:shop_of_today")
    process = start(*app, "up", PORT="8771", BATUTA_LANG="en", TZ="UTC", DATABASE_URL=os.environ["SHOP_URL"])
    try:
        await wait_until_ready(8771)
        await asyncio.sleep(20)  # until every process has written its first heartbeat
        await picture(browser, "http://127.0.0.1:8771/painel", "jobs.png", locale="en-US")
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


async def draw_julia(browser: Browser, folder: Path) -> None:
    files = {"DATABASE_URL": f"sqlite:///{folder}/julia.db", "OPTOUT_JOURNAL": f"{folder}/journal"}
    process = start("up", PORT="8772", SIMULADOR_PORT="8773", DEMO="1", **files)
    try:
        await wait_until_ready(8772)
        await asyncio.sleep(DEMONSTRATION.total_seconds())
        await picture(browser, "http://127.0.0.1:8772/painel", "julia.png", locale="pt-BR", height=1000)
        await picture(browser, "http://127.0.0.1:8772/painel/execucoes", "julia-runs.png", locale="pt-BR", height=700)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


async def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="batuta-pictures-") as folder:
        async with chromium() as browser:
            await draw_shop(browser, Path(folder))
            await draw_julia(browser, Path(folder))


def __getattr__(name: str) -> Batuta:
    """Return the shop on the machine's clock for the name `shop_of_today`, which `batuta up` imports."""
    if name != "shop_of_today":
        raise AttributeError(name)
    return shop()


if __name__ == "__main__":
    asyncio.run(main())
