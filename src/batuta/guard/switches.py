"""Durable switches: the engine's pauses and the application's own switches. Each switch has one row with the operator
who set it.

A switch that cannot be read holds the work: during an outage of the database a guard must not admit work by accident.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from batuta.guard.base import Admit, Hold, Verdict
from batuta.kernel.errors import StoreUnavailable
from batuta.kernel.reasons import define

# Delay before a held caller checks again, so that a changed switch takes effect within a second.
RECHECK_AFTER = timedelta(seconds=1)

SWITCH_ON = define("switch_on", "switch {switch} is on{setting}")
SWITCH_OFF = define("switch_off", "switch {switch} is off{setting}")
# The fact ``setting`` of the reasons above, for a switch that an operator set; it is empty in the default position.
SET_BY = define("set_by", ", set by {by}")
SET_BY_WHY = define("set_by_why", ", set by {by}: {said}")
NOT_SAID = ("", "-")  # stored reasons that contain no information
SWITCH_AWAY = define("switch_away", "cannot read switch {switch}")
SWITCH_UNREADABLE = define("switch_unreadable", "switch {switch} is unreadable: set it again")


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """The stored position of a switch."""

    key: str
    on: bool | None  # None: the stored value is neither on nor off
    reason: str
    until: datetime | None  # end of a temporary setting; from then on the switch is in its default position
    set_by: str
    set_at: datetime


class Switches(Protocol):
    """Interface of the stored switches. ``read`` returns None for a switch that was never set."""

    async def read(self, key: str) -> Switch | None: ...

    async def set(
        self, key: str, on: bool, *, by: str, reason: str, now: datetime, until: datetime | None = None
    ) -> Switch: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchRule:
    """A rule that holds work while the switch ``key`` is in position ``hold_when``. A switch that was never set is in
    ``default``.
    """

    key: str
    hold_when: bool = True
    default: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchGuard(SwitchRule):
    """Guard that reads its switch at each call."""

    switches: Switches

    async def admit(self, now: datetime) -> Verdict:
        try:
            switch = await self.switches.read(self.key)
        except StoreUnavailable:
            return Hold(now + RECHECK_AFTER, SWITCH_AWAY(switch=self.key))
        return judge_switch(self, switch, now)


def judge_switch(rule: SwitchRule, switch: Switch | None, now: datetime) -> Verdict:
    """Return whether a rule admits or holds, given the stored switch."""
    if switch is None or (switch.until is not None and now >= switch.until):
        if rule.default is not rule.hold_when:
            return Admit()
        return Hold(now + RECHECK_AFTER, (SWITCH_ON if rule.default else SWITCH_OFF)(switch=rule.key, setting=""))
    if switch.on is None:
        return Hold(now + RECHECK_AFTER, SWITCH_UNREADABLE(switch=rule.key))
    if switch.on is not rule.hold_when:
        return Admit()
    by, said = switch.set_by, switch.reason
    setting = SET_BY(by=by) if said in NOT_SAID else SET_BY_WHY(by=by, said=said)
    reason = (SWITCH_ON if switch.on else SWITCH_OFF)(switch=rule.key, setting=setting)
    return Hold(min(switch.until or now + RECHECK_AFTER, now + RECHECK_AFTER), reason)
