"""Is everything this process needs there? Each part answers for itself, within a time limit, and the worst decides."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TypeAlias

from batuta.kernel.clock import Clock
from batuta.kernel.errors import BatutaError
from batuta.kernel.usercode import Late, Raised, Returned, attempt, name_of

PROBE_TIMEOUT = timedelta(seconds=2)


class State(StrEnum):
    """The state of one part of a process."""

    OK = "ok"
    UNKNOWN = "unknown"  # not configured: nothing to say, and nothing wrong
    DEGRADED = "degraded"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Part:
    """``why`` is for operators: it may say where something is, so it is not for everybody."""

    state: State
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Probe:
    """``needed``: without it this process is of no use."""

    ask: Callable[[], Awaitable[Part]]
    needed: bool


Probes: TypeAlias = Mapping[str, Probe]


async def look(probes: Probes, clock: Clock) -> dict[str, Part]:
    """All at once, so that the slowest decides how long it takes, and never longer than PATIENCE."""
    parts = await asyncio.gather(*(_ask(name, probe, clock) for name, probe in probes.items()))
    return dict(zip(probes, parts, strict=True))


def verdict(parts: Mapping[str, Part], probes: Probes) -> str:
    if any(parts[name].state is State.ERROR for name, probe in probes.items() if probe.needed):
        return "not_ready"
    if any(part.state in (State.ERROR, State.DEGRADED) for part in parts.values()):
        return "degraded"
    return "ready"


async def _ask(name: str, probe: Probe, clock: Clock) -> Part:
    match await attempt(probe.ask, clock.now() + PROBE_TIMEOUT, clock, f"the probe of {name}"):
        case Returned(value=Part() as part):
            return part
        case Raised(error=BatutaError() as error):
            return Part(State.ERROR, str(error))
        case Raised(error=error):
            return Part(State.ERROR, name_of(error))
        case Late(error=why):
            return Part(State.ERROR, why)
        case Returned(value=other):
            return Part(State.ERROR, type(other).__name__)
