"""The Telegram worker hangs in every known way. Each hang is detected, the worker is replaced, and no message is lost
or sent twice.
"""

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from batuta.processes.restarts import EXIT_AGAIN
from tests.faults.conftest import one_of, together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.processes import tree
from tests.faults.telegram_harness import TelegramOffice, telegram_office
from tests.faults.waiting import until
from tests.julia.tables import rows

MESSAGES = 50 if LONG else 10
# Promises of docs/supervision.md, in seconds.
FOUND, SERVING, REPLACED = 20.0, 30.0, 60.0


@pytest.mark.calm
@pytest.mark.parametrize(
    ("test", "way", "code"), [("T24", "bloqueia", EXIT_AGAIN), ("T25", "expressao", 1)], ids=["T24", "T25"]
)
async def test_call_that_blocks_the_worker_is_ended_and_its_message_sent_once(
    places: dict[str, Path], test: str, way: str, code: int
) -> None:
    await together(*(_blocks(test, way, code, url, folder) for url, folder in one_of(places, "sqlite").items()))


async def _is_recorded(office: TelegramOffice) -> bool:
    return bool(await office.restarts("blocked"))


async def _blocks(test: str, way: str, code: int, url: str, folder: Path) -> None:
    what = {"bloqueia": "`time.sleep(600)`", "expressao": "an endless regular expression"}[way]
    figures = Figures(test, kind(url), f"Telegram: a call of one of three accounts blocks the process with {what}")
    # The watchdog thread uses the machine's clock, so the fast clock does not shorten its limit. The fast clock
    # shortens only the waits that follow.
    blocked, rate = (15.0, 1.0) if LONG else (3.0, 5.0)
    async with telegram_office(folder, url, accounts=3, doctors=40, rate=rate, blocked=blocked) as office:
        office.start_worker()
        await office.until_sent(await office.put(3))
        await office.put(MESSAGES // 2)
        await office.put(1, words=f" [{way}]")
        await office.put(MESSAGES // 2)
        await until("it strikes", lambda: office.noted("ill", way))
        await until("the process ends", lambda: office.exited(1))
        await until("another serves", lambda: office.noted("up", count=2))
        struck = float(office.notes("ill", way)[0][-1])
        found, serving = office.exits[0].at - struck, float(office.notes("up")[1][-1]) - struck
        await office.until_sent()
        tally = await office.tally()
        figures.record_items(
            tally,
            f"the process logged its stack and ended after {found:.1f} s; the next process worked after {serving:.1f} s",
        )
        await until("the restart is recorded", lambda: _is_recorded(office))
        (row,) = await office.restarts("blocked")
        assert office.exits[0].code == code
        assert "telegram_plant" in row["stack"]
        assert (tally.lost, tally.doubled, len(office.exits)) == (0, 0, 1)
        if LONG:
            assert found <= FOUND
            assert serving <= SERVING


@pytest.mark.parametrize("where", ["send", "receive"])
async def test_call_that_ignores_its_cancellation_is_replaced_with_its_process(
    places: dict[str, Path], where: str
) -> None:
    await together(*(_swallows(where, url, folder) for url, folder in one_of(places, "sqlite").items()))


async def _swallows(where: str, url: str, folder: Path) -> None:
    rate = 1.0 if LONG else 20.0
    figures = Figures(
        "T26", kind(url), f"Telegram: one of three accounts {where}s messages, and its call ignores the cancellation"
    )
    # The limit of a send is the sum of its calls: 45 s here.
    limits = {"telegram_timeout_entity": 10, "telegram_timeout_send": 10, "telegram_timeout_media": 10}
    async with telegram_office(
        folder, url, accounts=3, doctors=40, rate=rate, telegram_timeout_cycle=45, **limits
    ) as office:
        office.start_worker()
        await office.until_sent(await office.put(3))
        if where == "send":
            await office.put(1, words=" [surda]")
        else:
            office.ask_for("receive", "[surda]")
        await until("it strikes", lambda: office.noted("ill", "surda"))
        await office.put(MESSAGES)
        await until("the process ends", lambda: office.exited(1))
        await until("another serves", lambda: office.noted("up", count=2))
        struck = float(office.notes("ill", "surda")[0][-1])
        serving = (float(office.notes("up")[1][-1]) - struck) * rate
        await office.until_sent()
        tally = await office.tally()
        figures.record_items(
            tally, f"the process was replaced {serving:.1f} s after the call began; the time limit of the call was 45 s"
        )
        assert office.exits[0].code == EXIT_AGAIN
        assert len(await office.restarts("uncancellable")) == 1
        assert (tally.lost, tally.doubled) == (0, 0)
        if LONG:
            assert serving <= 45 + REPLACED


async def test_connection_without_updates_is_found_and_no_inbound_message_is_lost(places: dict[str, Path]) -> None:
    await together(*(_is_deaf(url, folder) for url, folder in one_of(places, "sqlite").items()))


async def _is_deaf(url: str, folder: Path) -> None:
    messages, rate = (100, 1.0) if LONG else (10, 10.0)
    figures = Figures("T27", kind(url), f"Telegram: {messages} messages arrive while a connection is silently dead")
    async with telegram_office(folder, url, accounts=1, doctors=1, rate=rate) as office:
        office.start_worker()
        await until("the account is connected", lambda: office.connected(1))
        (account,) = office.accounts
        await office.server.behave(account.usuario, silent=True)
        person = (await office.server.add("pessoas", nome="Pessoa"))["id"]
        for n in range(messages):
            await office.server.add("mensagens", de=person, conta=account.usuario, texto=f"resposta {n}")
        began = office.now()
        await until("all are stored", lambda: _stored(office.julia.work.database, messages))
        found = (office.now() - began).total_seconds()
        texts = [each["texto"] for each in await _inbox(office.julia.work.database)]
        doubled, lost = len(texts) - len(set(texts)), messages - len(set(texts))
        figures.record_bare(
            messages,
            f"all messages were stored {found:.1f} s after the last one arrived;"
            f" messages stored twice: {doubled}; no process restarted",
            wrong=lost,
        )
        assert (lost, doubled, office.exits) == (0, 0, [])
        assert await office.connected(1)
        if LONG:
            assert found <= REPLACED


async def _stored(database: object, count: int) -> bool:
    return len(await _inbox(database)) >= count


async def _inbox(database: object) -> list[dict[str, object]]:
    return await rows(database, "SELECT texto FROM telegram_entrada WHERE NOT propria")  # type: ignore[arg-type]


@pytest.mark.skipif(not LONG, reason="the parent waits 20 s for a sign of life; its own tests have a short form")
async def test_stopped_worker_is_replaced_and_takes_its_sessions_back(julia_url: str, tmp_path: Path) -> None:
    figures = Figures("T28", kind(julia_url), "Telegram: the worker of `batuta up` is stopped (SIGSTOP)")
    async with telegram_office(tmp_path / "office", julia_url, accounts=3, doctors=0) as office:
        environment = {
            "DATABASE_URL": julia_url,
            "TELEGRAM_SIMULADOR_URL": f"{office.server.url}/telegram",
            "TELEGRAM_SESSION_KEYS": "synthetic",
        }
        with tree(tmp_path, "up", **environment) as up:
            await until("all accounts are connected", lambda: office.connected(3))
            pid = up.children()["telegram"]
            os.kill(pid, signal.SIGSTOP)
            began = time.monotonic()
            while up.children().get("telegram") in (pid, None):
                assert time.monotonic() - began < 120, up.log.read_text()[-3000:]
                await asyncio.sleep(0.1)
            replaced = time.monotonic() - began
            until_now = office.now()
            await until("the accounts are connected again", lambda: office.connected_since(until_now, 3))
            serving = time.monotonic() - began
        figures.record_bare(
            1,
            f"the process was replaced after {replaced:.1f} s; all accounts were connected again after {serving:.1f} s",
        )
        assert replaced <= 40
