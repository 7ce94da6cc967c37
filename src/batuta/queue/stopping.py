"""Handlers that were cancelled, until they have taken notice: told a second time, and then given up."""

import asyncio
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, TypeAlias

from batuta.kernel.clock import Clock
from batuta.supervise.running import MOST_CANCELS
from batuta.supervise.watchdog import GRACE

Task: TypeAlias = "asyncio.Task[Any]"


class Stop(Enum):
    """Why a handler was cancelled."""

    OVERDUE = auto()  # its time limit is over
    UNWANTED = auto()  # somebody asked for it


@dataclass(slots=True)
class Told:
    at: float
    cancels: int = 1

    @property
    def again_at(self) -> float:
        return self.at + GRACE.total_seconds()


class Stopping:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told: dict[Task, Told] = {}

    def cancel(self, task: Task) -> None:
        self._told[task] = Told(self._clock.monotonic())
        task.add_done_callback(self.heard)
        task.cancel()

    def heard(self, task: Task) -> None:
        """It has taken notice: what it does now must not be cut off by a second word."""
        self._told.pop(task, None)

    @property
    def moments(self) -> list[float]:
        """When there is something to do about each."""
        return [told.again_at for told in self._told.values()]

    def deaf(self) -> list[Task]:
        """Those that go on although they were told often enough, named once. The others are told once more, if it is time."""
        now = self._clock.monotonic()
        late = [(task, told) for task, told in self._told.items() if now >= told.again_at]
        for task, told in late:
            if told.cancels < MOST_CANCELS:
                told.cancels, told.at = told.cancels + 1, now
                task.cancel()
        given_up = [task for task, told in late if told.at < now]
        for task in given_up:
            del self._told[task]
        return given_up


def take_back(task: Task) -> None:
    """Every cancellation of it: what it was told for has happened."""
    for _ in range(task.cancelling()):
        task.uncancel()
