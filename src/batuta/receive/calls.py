"""The ledger of calls: a repeated key gets the first answer, and one piece of work runs once at a time in all processes."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, TypeAlias

from batuta.kernel.json import Json


@dataclass(frozen=True, slots=True)
class CallOpened:
    """This process runs the call and closes it. ``at`` is the fence, by the clock that decides."""

    at: datetime


@dataclass(frozen=True, slots=True)
class Answered:
    """The same key was answered before."""

    response_code: int
    response: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Busy:
    """The same work is running: under this very key, or under another."""

    same_key: bool = False


@dataclass(frozen=True, slots=True)
class KeyReused:
    """The same key came with other parameters: a mistake of the caller."""


CallOpening: TypeAlias = CallOpened | Answered | Busy | KeyReused


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCall:
    key: str
    endpoint: str
    subject: str  # what must not run twice at a time
    fingerprint: str  # what makes a repeat a repeat
    lease: timedelta  # without a renewal for so long, its process counts as dead


class JobCalls(Protocol):
    async def open(self, call: NewCall) -> CallOpening: ...
    async def close(self, key: str, response_code: int, response: Mapping[str, Json], *, opened_at: datetime) -> None:
        """``opened_at`` is the fence: if another process has opened the key since, nothing is written."""
        ...

    async def renew(self, key: str, *, opened_at: datetime, lease: timedelta) -> None: ...

    async def forget(self, key: str, *, opened_at: datetime) -> None:
        """As if it had never been opened: it was cut off, and a repeat may run it."""
        ...
