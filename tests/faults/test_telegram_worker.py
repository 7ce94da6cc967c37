"""Acceptance tests for the Telegram worker. They test the worker alone, and with accounts that hang, are flooded,
blocked or logged out.

The worker's loops and heartbeat continue, messages arrive quickly, accounts do not affect each other, and no message is
lost or sent twice.
"""

import asyncio
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from batuta.processes.heartbeat import HEARTBEAT_EVERY
from tests.faults.conftest import one_of, together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.proxy import proxy
from tests.faults.telegram_harness import Account, TelegramOffice, number_of, p99, telegram_office
from tests.faults.waiting import slowness, until
from tests.julia.tables import rows

LOOPS = ("sync", "outbound", "history", "jobs")
STUCK_AFTER = 60.0  # seconds of the worker's clock
MARGIN = 10.0


async def test_outage_of_the_network_is_logged_and_stops_neither_loops_nor_heartbeat(places: dict[str, Path]) -> None:
    await together(*(_outage(url, folder) for url, folder in one_of(places, "sqlite").items()))


async def _outage(url: str, folder: Path) -> None:
    outage, rate = 20.0, 1.0 if LONG else 5.0
    figures = Figures("S3.1", kind(url), f"Telegram: the network is down for {outage:.0f} s while messages wait")
    async with telegram_office(folder, url, accounts=3, doctors=12, rate=rate) as office:
        async with proxy(office.server.port) as way:
            office.plan["port"] = way.port
            office.start_worker()
            await office.until_sent(await office.put(3))
            way.freeze()
            await office.put(9)
            beats = await office.beats_during(outage)
            way.heal()
            took = await office.until_sent()
            await way.stop()
        tally, timeouts = await office.tally(), office.log().count("[TIMEOUT]")
        assert (tally.lost, tally.doubled) == (0, 0)
        assert timeouts > 0, office.log()[-4000:]
        assert "após 15s" in office.log()
        assert office.exits == []
        assert await office.restarts("stuck") == []
        if LONG:
            assert max(beats, default=0.0) <= HEARTBEAT_EVERY.total_seconds() + 2
        figures.record_items(
            tally,
            f"timeouts in the log: {timeouts}; restarts: 0; longest time between two heartbeats: {max(beats, default=0.0):.1f} s;"
            f" all messages were sent {took * rate:.1f} s after the network returned",
        )


async def test_loops_that_sleep_endlessly_are_restarted_while_the_heartbeat_continues(places: dict[str, Path]) -> None:
    await together(*(_sleeps(url, folder) for url, folder in one_of(places, "sqlite").items()))


async def _sleeps(url: str, folder: Path) -> None:
    rate = 1.0 if LONG else 20.0
    restart = Figures("S3.2", kind(url), "Telegram: all four loops hang at the same time")
    beating = Figures("S3.3", kind(url), "Telegram: the worker sends heartbeats while all four loops hang")
    async with telegram_office(folder, url, accounts=2, doctors=4, rate=rate) as office:
        office.start_worker()
        await until("the accounts are connected", lambda: office.connected(2))
        for name in LOOPS:
            office.ask_for(f"sleep-{name}")
        await office.put(2)  # wakes the loop ``outbound``
        await until("all sleep", lambda: _all_noted(office, "ill", "sleep"))
        beats = await office.beats_during(STUCK_AFTER)
        await until("all tick again", lambda: _all_noted(office, "tick"))
        await office.until_sent()
        found = [
            (float(office.notes("tick", name)[0][-1]) - float(office.notes("ill", "sleep", name)[0][-1])) * rate
            for name in LOOPS
        ]
        await until("every restart is recorded", lambda: _all_recorded(office))
        stuck = await office.restarts("stuck")
        (row,) = await office.heartbeats()
        assert office.exits == []
        assert {each["loop"] for each in stuck} == set(LOOPS)
        assert set(row["loops_status"]) == set(LOOPS)
        if LONG:
            assert max(found) <= STUCK_AFTER + MARGIN
            assert max(beats) <= HEARTBEAT_EVERY.total_seconds() + 2
        restart.record_bare(
            4,
            f"each loop worked again after at most {max(found):.1f} s (`stuck_after` is {STUCK_AFTER:g} s); no process ended",
        )
        beating.record_bare(
            len(beats),
            f"time between two heartbeats: median {statistics.median(beats):.1f} s, longest {max(beats):.1f} s",
        )


async def _all_recorded(office: TelegramOffice) -> bool:
    return {each["loop"] for each in await office.restarts("stuck")} == set(LOOPS)


async def _all_noted(office: TelegramOffice, *words: str) -> bool:
    return all(office.notes(*words, name) for name in LOOPS)


async def test_messages_arrive_within_a_second(places: dict[str, Path]) -> None:
    await together(*(_quickly(url, folder) for url, folder in one_of(places, "sqlite").items()))


async def _quickly(url: str, folder: Path) -> None:
    messages, slow = 1_000 if LONG else 50, slowness()
    figures = Figures(
        "S3.4", kind(url), f"Telegram: five messages are sent at once, then {messages} messages one after the other"
    )
    async with telegram_office(folder, url, accounts=5, doctors=messages + 10) as office:
        office.start_worker()
        await office.until_sent(await office.put(5))  # so that all accounts are connected
        five = await office.put(5)
        await office.until_sent(five)
        first = await office.latencies(five)
        many = []
        for _ in range(messages):
            many += await office.put(1)
            await asyncio.sleep(0.05)
        await office.until_sent(many)
        seconds = await office.latencies(many)
        figures.record_items(
            await office.tally(),
            f"longest latency of the five messages: {first[-1]:.2f} s; latency of the {messages} messages:"
            f" p50 {statistics.median(seconds):.2f} s, p99 {p99(seconds):.2f} s, longest {seconds[-1]:.2f} s",
        )
        assert first[-1] < 10 * slow
        assert p99(seconds) < (1 if LONG else 5 * slow)


async def test_a_hanging_account_does_not_slow_the_others(places: dict[str, Path]) -> None:
    await together(*(_one_hangs(url, folder) for url, folder in one_of(places, "postgresql").items()))


async def _one_hangs(url: str, folder: Path) -> None:
    messages, waiting = (900, 100) if LONG else (45, 5)
    figures = Figures(
        "T42", kind(url), f"Telegram: one of ten accounts hangs while the other nine send {messages} messages"
    )
    async with telegram_office(folder, url, accounts=10, doctors=messages) as office:
        office.start_worker()
        await office.until_sent(await office.put(20))
        before = await _one_by_one(office, messages)
        await office.server.behave(office.accounts[0].usuario, hang=True)
        await office.put(waiting, office.accounts[:1])
        during = await _one_by_one(office, messages)
        calm, busy = p99(await office.latencies(before)), p99(await office.latencies(during))
        figures.record_bare(
            len(during), f"p99 of the latency: {calm:.2f} s before the hang, {busy:.2f} s during the hang"
        )
        assert busy <= max(2 * calm, 0.5 if LONG else 5 * slowness())


async def _one_by_one(office: TelegramOffice, count: int) -> list[str]:
    """Queue messages for nine accounts no faster than they can send them, and wait until all are sent."""
    ids: list[str] = []
    for _ in range(count):
        ids += await office.put(1, office.accounts[1:])
        await asyncio.sleep(0.05)
    await office.until_sent(ids)
    return ids


@pytest.mark.parametrize(("flood", "rate"), [(60, 1.0), (3_600, 10.0)] if LONG else [(60, 10.0)])
async def test_accounts_that_hang_flood_or_are_logged_out_stop_alone(
    places: dict[str, Path], flood: int, rate: float
) -> None:
    await together(*(_accounts_fail(url, folder, flood, rate) for url, folder in one_of(places, "sqlite").items()))


async def _accounts_fail(url: str, folder: Path, flood: int, rate: float) -> None:
    figures = Figures(
        "T42",
        kind(url),
        f"Telegram: of five accounts, one hangs, one must wait for {flood} s (FLOOD_WAIT), one gets PEER_FLOOD,"
        " one is logged out, and one works",
    )
    async with telegram_office(folder, url, accounts=5, doctors=40, rate=rate) as office:
        hanging, flooded, spamming, revoked, healthy = office.accounts
        server = office.server
        office.start_worker()
        await office.until_sent(await office.put(5))
        await server.behave(hanging.usuario, hang=True)
        hung = office.now()
        await server.behave(flooded.usuario, flood_wait=flood)
        await server.behave(spamming.usuario, peer_flood=True)
        await server.add(f"contas/{revoked.usuario}/revogar")
        stopped = {each.nome: await office.put(4, [each]) for each in (hanging, flooded, spamming, revoked)}
        well = await office.put(10, [healthy])
        await office.until_sent(well)
        await until("the dead client is found", lambda: _is_lost(office, hanging))
        found = office.now() - hung
        await until("the session is known to be revoked", lambda: _is_revoked(office, revoked))
        await until("the breaker is open", lambda: _is_open(office, spamming))
        await until("the flood is known", lambda: _waits(office, flooded))
        assert (office.exits, await office.restarts("stuck")) == ([], [])
        # A new process obeys a flood wait that an earlier process received, even before it connects.
        await office.kill_worker()
        await until("the flood of connections is known", lambda: _waits(office, flooded, "connect"))
        await office.kill_worker()
        await server.behave(hanging.usuario, hang=False)
        await office.log_in_again(revoked)
        resumed = [*stopped[hanging.nome], *stopped[flooded.nome], *stopped[revoked.nome]]
        await office.until_sent(resumed)
        calls = (await server.shown(spamming.usuario))["chamadas"]["send_text"]
        during = (await server.shown())["chamadas_durante_flood"]
        tally = await office.tally()
        figures.record_items(
            replace(tally, items=tally.items - 4, lost=tally.lost - 4),
            f"the hanging client was found after {found.total_seconds():.1f} s; calls during the FLOOD_WAIT: {during}; restarts: 0;"
            f" sends after PEER_FLOOD: {calls - 2}; messages that wait for the end of PEER_FLOOD: 4",
        )
        assert (during, calls) == (0, 2)  # one call before PEER_FLOOD, and the call that received it
        assert (tally.lost, tally.doubled) == (4, 0)
        assert found <= timedelta(seconds=90 * (1 if LONG else 3 * slowness()))
        assert await office.restarts("stuck") == []


async def _is_lost(office: TelegramOffice, conta: Account) -> bool:
    return not (await office.account(conta))["conectada"]


async def _is_revoked(office: TelegramOffice, conta: Account) -> bool:
    return bool((await office.account(conta))["estado"] == "revogada")


async def _waits(office: TelegramOffice, conta: Account, *metodos: str) -> bool:
    """Return whether a flood wait is stored for the account and, if methods are given, for each of them."""
    stored = "SELECT metodo FROM telegram_esperas WHERE conta_id = :id"
    found = {each["metodo"] for each in await rows(office.julia.work.database, stored, id=conta.id)}
    return bool(found) and found >= set(metodos)


async def _is_open(office: TelegramOffice, conta: Account) -> bool:
    state = "SELECT state FROM circuits WHERE circuit_name = :name"
    found = await rows(office.julia.work.database, state, name=f"telegram:{conta.id}")
    return [each["state"] for each in found] == ["open"]


@pytest.mark.parametrize("forgets", [False, True])
async def test_lost_answers_and_kills_double_and_lose_no_message(places: dict[str, Path], forgets: bool) -> None:
    chosen = one_of(places, "sqlite" if forgets else "postgresql")
    await together(*(_storm(url, folder, forgets) for url, folder in chosen.items()))


async def _storm(url: str, folder: Path, forgets: bool) -> None:
    messages, kills, accounts = (1_000, 40, 50) if LONG else (30, 3, 5)
    # only these answers are lost, because losing others also breaks connections, which takes time
    lost: list[str] = [] if LONG else ["send_text"]
    behaviour = {"lost_answers": 0.3, "lost_methods": lost, "forgets_random_ids": forgets}
    memory = "; the server forgets each message's `random_id`" if forgets else ""
    done = (
        f"Telegram: worker and server are killed repeatedly while {messages} messages are sent;"
        f" 30 % of the server's answers are lost{memory}"
    )
    figures = Figures("T39", kind(url), done)
    # Each doctor receives two messages of the same account, so that their order can be compared: the number of doctors is
    # a multiple of the number of accounts.
    async with telegram_office(folder, url, accounts=accounts, doctors=messages // 2) as office:
        await office.put(messages)
        await office.storm(random.Random(20260311), kills, behaviour)
        killed = time.monotonic()
        await office.until_sent()
        took, tally = time.monotonic() - killed, await office.tally()
        swapped = out_of_order([number_of(each) for each in await office.server.receipts()], len(office.doctors))
        states = await office.states()
        figures.record_items(
            tally,
            f"kills: {office.killed} of the worker, {office.server.killed} of the server; the results of all messages were known"
            f" {took:.0f} s after the last kill; messages out of order: {swapped}",
        )
        assert (tally.lost, tally.doubled, swapped) == (0, 0, 0)
        assert states == {"enviada/-": messages}


def out_of_order(numbers: Sequence[int], chats: int) -> int:
    """Count the messages that were overtaken: a message to the same chat that was queued later was sent before them."""
    last: dict[int, int] = {}
    wrong = 0
    for n in numbers:
        wrong += n < last.get(n % chats, -1)
        last[n % chats] = max(n, last.get(n % chats, -1))
    return wrong
