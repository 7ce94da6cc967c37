"""Guards decide whether an effect, such as a call to a service, is admitted or held back: opening hours, rate limits,
switches and circuit breakers.
"""

from batuta.guard.base import (
    WORKED,
    Admit,
    AllOf,
    Effect,
    EffectReport,
    Guard,
    Hold,
    HoursGuard,
    Ticket,
    effect_of_status,
)
from batuta.guard.breaker import Circuit, CircuitState
from batuta.guard.circuits import Circuits
from batuta.guard.rate import Limit, RateGuard, Rates, gap
from batuta.guard.switches import Switch, SwitchGuard, SwitchRule, judge_switch

__all__ = [
    "WORKED",
    "Admit",
    "AllOf",
    "Circuit",
    "CircuitState",
    "Circuits",
    "Effect",
    "EffectReport",
    "Guard",
    "Hold",
    "HoursGuard",
    "Limit",
    "RateGuard",
    "Rates",
    "Switch",
    "SwitchGuard",
    "SwitchRule",
    "Ticket",
    "effect_of_status",
    "gap",
    "judge_switch",
]
