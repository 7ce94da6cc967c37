"""What a guard answers."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeAlias


@dataclass(frozen=True, slots=True)
class Admit:
    """Go ahead."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Not before ``until``."""

    until: datetime
    reason: str


Verdict: TypeAlias = Admit | Hold


class Guard(Protocol):
    async def admit(self, now: datetime) -> Verdict:
        """Asked before anything is claimed. A guard that cannot know says Hold."""
        ...

    async def record(self, ok: bool, now: datetime) -> None:
        """Told afterwards; breakers and buckets learn here."""
        ...
