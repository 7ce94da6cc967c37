"""Durable switches: the engine's pauses and the application's own switches. Each switch has one row, which names the
operator who set it.

If a switch cannot be read, its guard holds the work back, so that no work is admitted by accident during a database
outage.
"""

from datetime import datetime, timedelta
from typing import Protocol

from batuta.guard.base import Admit, Hold, Verdict
from batuta.kernel.errors import StoreUnavailable
from batuta.kernel.reasons import define
from batuta.kernel.values import dataclass

# Delay before a held caller checks again. A changed switch takes effect within this time.
RECHECK_AFTER = timedelta(seconds=1)

SWITCH_ON = define("switch_on", "switch {switch} is on{setting}")
SWITCH_OFF = define("switch_off", "switch {switch} is off{setting}")
# The fact ``setting`` of the reasons above. It names the operator who set the switch, and is empty in the default
# position.
SET_BY = define("set_by", ", set by {by}")
SET_BY_WHY = define("set_by_why", ", set by {by}: {said}")
NOT_SAID = ("", "-")  # stored reasons that carry no information
SWITCH_AWAY = define("switch_away", "cannot read switch {switch}")
SWITCH_UNREADABLE = define("switch_unreadable", "switch {switch} is unreadable: set it again")


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """The stored position of a switch."""

    key: str
    on: bool | None  # None if the stored value is neither on nor off
    reason: str
    until: datetime | None  # end of a temporary setting, after which the switch returns to its default position
    set_by: str
    set_at: datetime


class Switches(Protocol):
    """Interface of the switch store. ``read`` returns None for a switch that was never set."""

    async def read(self, key: str) -> Switch | None: ...

    async def set(
        self, key: str, on: bool, *, by: str, reason: str, now: datetime, until: datetime | None = None
    ) -> Switch: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchRule:
    """A rule that holds work back while the switch ``key`` is in the position ``hold_when``. A switch that was never
    set is in the position ``default``.
    """

    key: str
    hold_when: bool = True
    default: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchGuard(SwitchRule):
    """Guard that reads a switch from the store at each call. The guard holds work back while the switch is in the
    position ``hold_when``, and while the switch cannot be read.
    """

    switches: Switches

    async def admit(self, now: datetime) -> Verdict:
        try:
            switch = await self.switches.read(self.key)
        except StoreUnavailable:
            return Hold(now + RECHECK_AFTER, SWITCH_AWAY(switch=self.key))
        return judge_switch(self, switch, now)


def judge_switch(rule: SwitchRule, switch: Switch | None, now: datetime) -> Verdict:
    """Decide from the stored position of the switch whether the rule admits work or holds it back."""
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
