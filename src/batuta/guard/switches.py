"""Durable switches: pause, safe mode, pilot. One record, one meaning; whoever turns one is named.

A switch that cannot be read holds the work: a guard must not disappear exactly when it matters.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from batuta.guard.base import Admit, Hold, Verdict
from batuta.kernel.errors import StoreUnavailable

# How long a held caller rests before asking again: a turned switch must be felt within a second.
PATIENCE = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    key: str
    on: bool | None  # None: what stands there is neither on nor off, so nobody knows
    reason: str
    until: datetime | None  # a bounded turn: at this instant it is as if nobody had touched it
    turned_by: str
    turned_at: datetime


class Switches(Protocol):
    """``read`` gives None for a switch nobody ever turned."""

    async def read(self, key: str) -> Switch | None: ...

    async def turn(
        self, key: str, on: bool, *, by: str, reason: str, now: datetime, until: datetime | None = None
    ) -> Switch: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchRule:
    """Holds while switch ``key`` is in the position ``hold_when``. ``at_rest`` is its position until somebody turns it."""

    key: str
    hold_when: bool = True
    at_rest: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchGuard(SwitchRule):
    """A rule that reads its switch each time it is asked."""

    switches: Switches

    async def admit(self, now: datetime) -> Verdict:
        try:
            switch = await self.switches.read(self.key)
        except StoreUnavailable:
            return Hold(now + PATIENCE, f"cannot read switch {self.key}")
        return verdict(self, switch, now)


def verdict(rule: SwitchRule, switch: Switch | None, now: datetime) -> Verdict:
    if switch is None or (switch.until is not None and now >= switch.until):
        if rule.at_rest is not rule.hold_when:
            return Admit()
        return Hold(now + PATIENCE, f"switch {rule.key} is {_word(rule.at_rest)}")
    if switch.on is None:
        return Hold(now + PATIENCE, f"switch {rule.key} cannot be read: turn it again")
    if switch.on is not rule.hold_when:
        return Admit()
    reason = f"switch {rule.key} is {_word(switch.on)}, turned by {switch.turned_by}: {switch.reason}"
    return Hold(min(switch.until or now + PATIENCE, now + PATIENCE), reason)


def _word(on: bool) -> str:
    return "on" if on else "off"
