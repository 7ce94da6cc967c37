import asyncio
from datetime import datetime, timedelta

import pytest

from batuta.guard.base import Admit, Hold
from batuta.guard.switches import RECHECK_AFTER, Switch, SwitchGuard
from batuta.kernel.errors import DeadlineExceeded, StoreUnavailable
from batuta.kernel.waiting import with_deadline, with_timeout
from batuta.testing import FakeClock

MINUTE = timedelta(minutes=1)


class DictSwitches:
    """Switches in a dictionary, for decisions that need no database."""

    def __init__(self, *switches: Switch, is_unavailable: bool = False) -> None:
        self._switches = {switch.key: switch for switch in switches}
        self._is_unavailable = is_unavailable

    async def read(self, key: str) -> Switch | None:
        if self._is_unavailable:
            raise StoreUnavailable(where="db", why="down")
        return self._switches.get(key)

    async def set(
        self, key: str, on: bool, *, by: str, reason: str, now: datetime, until: datetime | None = None
    ) -> Switch:
        raise AssertionError("a guard sets no switch")


def switch(clock: FakeClock, on: bool, until: datetime | None = None) -> Switch:
    return Switch(key="pausa", on=on, reason="feriado", until=until, set_by="ana", set_at=clock.now())


async def test_switch_that_was_never_set_has_its_default(clock: FakeClock) -> None:
    assert await SwitchGuard(switches=DictSwitches(), key="pausa").admit(clock.now()) == Admit()


async def test_switch_that_is_on_holds_with_who_set_it_and_why(clock: FakeClock) -> None:
    verdict = await SwitchGuard(switches=DictSwitches(switch(clock, True)), key="pausa").admit(clock.now())
    assert verdict == Hold(clock.now() + RECHECK_AFTER, "switch pausa is on, set by ana: feriado")


async def test_switch_may_hold_when_it_is_off(clock: FakeClock) -> None:
    guard = SwitchGuard(switches=DictSwitches(switch(clock, False)), key="pausa", hold_when=False, default=True)
    assert isinstance(await guard.admit(clock.now()), Hold)
    never_set = SwitchGuard(switches=DictSwitches(), key="pausa", hold_when=False, default=False)
    assert isinstance(await never_set.admit(clock.now()), Hold)


async def test_switch_with_an_end_expires_by_itself(clock: FakeClock) -> None:
    guard = SwitchGuard(switches=DictSwitches(switch(clock, True, until=clock.now() + MINUTE)), key="pausa")
    assert isinstance(await guard.admit(clock.now()), Hold)
    assert await guard.admit(clock.now() + MINUTE) == Admit()


async def test_changed_switch_takes_effect_within_a_second(clock: FakeClock) -> None:
    verdict = await SwitchGuard(switches=DictSwitches(switch(clock, True)), key="pausa").admit(clock.now())
    assert isinstance(verdict, Hold)
    assert verdict.until - clock.now() <= timedelta(seconds=1)


async def test_unreadable_switch_holds(clock: FakeClock) -> None:
    verdict = await SwitchGuard(switches=DictSwitches(is_unavailable=True), key="pausa").admit(clock.now())
    assert verdict == Hold(clock.now() + RECHECK_AFTER, "cannot read switch pausa")


async def test_work_that_ends_in_time_returns_its_result(clock: FakeClock) -> None:
    async def answer() -> int:
        return 42

    assert await with_timeout(MINUTE, answer(), clock, "it") == 42


async def test_work_that_exceeds_its_deadline_is_cancelled_and_named(clock: FakeClock) -> None:
    stopped = asyncio.Event()

    async def never() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    waiting = asyncio.create_task(with_deadline(clock.now() + MINUTE, never(), clock, "the send"))
    await clock.advance(59)
    assert not waiting.done()
    await clock.advance(1)
    with pytest.raises(DeadlineExceeded, match="the send did not end by 2026-01-05T12:01:00"):
        await waiting
    assert stopped.is_set()


async def test_error_of_the_work_itself_is_not_taken_for_a_timeout(clock: FakeClock) -> None:
    async def fails() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        await with_timeout(MINUTE, fails(), clock, "it")
