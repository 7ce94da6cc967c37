"""Durable switches: pauses, and those of the application. A switch has one record, which names the operator who set it.

A switch that cannot be read holds the work: a guard must not disappear exactly when it matters.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from batuta.guard.base import Admit, Hold, Verdict
from batuta.kernel.errors import StoreUnavailable
from batuta.kernel.reasons import define

# Pause of a held caller before it asks again: a changed switch must take effect within a second.
RECHECK_AFTER = timedelta(seconds=1)

SWITCH_ON = define("switch_on", "switch {switch} is on{turned}")
SWITCH_OFF = define("switch_off", "switch {switch} is off{turned}")
# The fact ``turned`` of a switch that an operator set; it is empty for a switch in its default position.
TURNED_BY = define("turned_by", ", turned by {by}")
TURNED_BY_WHY = define("turned_by_why", ", turned by {by}: {said}")
NOT_SAID = ("", "-")  # reasons without information
SWITCH_AWAY = define("switch_away", "cannot read switch {switch}")
SWITCH_UNREADABLE = define("switch_unreadable", "switch {switch} cannot be read: turn it again")


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """The stored position of a switch."""

    key: str
    on: bool | None  # None: the stored value is neither on nor off
    reason: str
    until: datetime | None  # end of a temporary setting: from this instant the switch is in its default position
    set_by: str
    set_at: datetime


class Switches(Protocol):
    """``read`` returns None for a switch that was never set."""

    async def read(self, key: str) -> Switch | None: ...

    async def set(
        self, key: str, on: bool, *, by: str, reason: str, now: datetime, until: datetime | None = None
    ) -> Switch: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchRule:
    """Hold while switch ``key`` is in the position ``hold_when``. ``at_rest``: the position of a switch that was never
    set.
    """

    key: str
    hold_when: bool = True
    at_rest: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchGuard(SwitchRule):
    """Guard that reads its switch on each call."""

    switches: Switches

    async def admit(self, now: datetime) -> Verdict:
        try:
            switch = await self.switches.read(self.key)
        except StoreUnavailable:
            return Hold(now + RECHECK_AFTER, SWITCH_AWAY(switch=self.key))
        return judge_switch(self, switch, now)


def judge_switch(rule: SwitchRule, switch: Switch | None, now: datetime) -> Verdict:
    """Decide by a stored switch whether the rule admits or holds."""
    if switch is None or (switch.until is not None and now >= switch.until):
        if rule.at_rest is not rule.hold_when:
            return Admit()
        return Hold(now + RECHECK_AFTER, (SWITCH_ON if rule.at_rest else SWITCH_OFF)(switch=rule.key, turned=""))
    if switch.on is None:
        return Hold(now + RECHECK_AFTER, SWITCH_UNREADABLE(switch=rule.key))
    if switch.on is not rule.hold_when:
        return Admit()
    by, said = switch.set_by, switch.reason
    turned = TURNED_BY(by=by) if said in NOT_SAID else TURNED_BY_WHY(by=by, said=said)
    reason = (SWITCH_ON if switch.on else SWITCH_OFF)(switch=rule.key, turned=turned)
    return Hold(min(switch.until or now + RECHECK_AFTER, now + RECHECK_AFTER), reason)
