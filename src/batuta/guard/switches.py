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
    on: bool
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
class SwitchGuard:
    """Holds while switch ``key`` is in the position ``hold_when``. ``at_rest`` is its position until somebody turns it."""

    switches: Switches
    key: str
    hold_when: bool = True
    at_rest: bool = False

    async def admit(self, now: datetime) -> Verdict:
        try:
            switch = await self.switches.read(self.key)
        except StoreUnavailable:
            return Hold(now + PATIENCE, f"cannot read switch {self.key}")
        return verdict(self, switch, now)

    async def record(self, ok: bool, now: datetime) -> None:
        """A switch learns nothing: people turn it."""


def verdict(guard: SwitchGuard, switch: Switch | None, now: datetime) -> Verdict:
    if position(switch, guard.at_rest, now) is not guard.hold_when:
        return Admit()
    if switch is None:
        return Hold(now + PATIENCE, f"switch {guard.key} is {_word(guard.at_rest)}")
    reason = f"switch {guard.key} is {_word(switch.on)}, turned by {switch.turned_by}: {switch.reason}"
    return Hold(min(switch.until or now + PATIENCE, now + PATIENCE), reason)


def position(switch: Switch | None, at_rest: bool, now: datetime) -> bool:
    """Where the switch stands at ``now``: as turned, or at rest when nobody turned it or the turn has run out."""
    if switch is None or (switch.until is not None and now >= switch.until):
        return at_rest
    return switch.on


def _word(on: bool) -> str:
    return "on" if on else "off"
