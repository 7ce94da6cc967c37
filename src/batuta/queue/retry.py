"""How long a failed item waits before its next attempt, and when it is enough."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from batuta.kernel.backoff import exponential, from_list, full_jitter


class RetryPolicy(Protocol):
    def wait_after(self, attempt: int, chance: Callable[[], float]) -> timedelta | None:
        """None: it has failed for good. ``attempt`` counts from 1."""
        ...


@dataclass(frozen=True, slots=True)
class Waits:
    """A fixed list: n waits mean the first attempt and n retries."""

    waits: tuple[timedelta, ...]

    def wait_after(self, attempt: int, chance: Callable[[], float]) -> timedelta | None:
        return from_list(attempt, self.waits)


@dataclass(frozen=True, slots=True, kw_only=True)
class FullJitter:
    """Anywhere between nothing and an exponentially growing wait: a crowd of failures does not come back as a crowd."""

    base: timedelta = timedelta(seconds=5)
    cap: timedelta = timedelta(minutes=15)
    retries: int = 5

    def wait_after(self, attempt: int, chance: Callable[[], float]) -> timedelta | None:
        return None if attempt > self.retries else full_jitter(exponential(attempt, self.base, self.cap), chance())


def after_seconds(waits: Sequence[float]) -> Waits:
    return Waits(tuple(timedelta(seconds=wait) for wait in waits))
