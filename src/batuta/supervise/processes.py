"""The parent of a process tree: starts one child per role, shows what they say, and starts again the ones that end.

A child that ends with EXIT_CONFIG cannot be healed by another start: the whole family stops and its word is passed on.
"""

import asyncio
import ctypes
import os
import random
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TextIO

from batuta.kernel.backoff import equal_jitter, exponential
from batuta.kernel.clock import Clock
from batuta.kernel.events import ChildEnded, ChildStarted, Events
from batuta.supervise.loop import Doorbell, Idle, Pace

EXIT_CONFIG = 2
RESTART_BASE = timedelta(seconds=1)
RESTART_CAP = timedelta(minutes=1)
HEALTHY_AFTER = timedelta(minutes=10)
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class ChildSpec:
    role: str
    argv: Sequence[str]
    env: Mapping[str, str]


@dataclass(slots=True)
class Child:
    spec: ChildSpec
    process: asyncio.subprocess.Process | None = None
    watching: asyncio.Task[None] | None = None
    started_at: datetime | None = None
    starts_at: datetime | None = None  # when it is due to be started again
    ends: int = 0  # in a row, none of them after a healthy stretch


@dataclass(slots=True)
class Family:
    """A loop: each tick starts the children that are due and buries the ones that ended."""

    specs: Sequence[ChildSpec]
    clock: Clock
    events: Events
    stop: asyncio.Event
    prefixed: bool = True  # each line begins with its role; False where the lines are for machines
    out: TextIO = field(default_factory=lambda: sys.stdout)
    chance: Callable[[], float] = random.random
    name: str = "family"
    doorbell: Doorbell = field(default_factory=Doorbell)
    exit_code: int = 0
    _children: list[Child] = field(default_factory=list)

    async def tick(self) -> Pace:
        if not self._children:
            self._children = [Child(spec) for spec in self.specs]
        for child in self._children:
            if child.process is not None and child.process.returncode is not None:
                self._bury(child, child.process.returncode)
            if child.process is None and not self.stop.is_set() and self._is_due(child):
                await self._start(child)
        return Idle(min((child.starts_at for child in self._children if child.starts_at), default=None))

    async def drain(self, grace: timedelta) -> None:
        """Children end in the reverse order of starting, each asked first and killed when its grace is over."""
        for child in reversed(self._children):
            if child.process is not None and child.process.returncode is None:
                await self._end(child.spec.role, child.process, grace / len(self._children))
            if child.watching is not None:
                await child.watching

    def _is_due(self, child: Child) -> bool:
        return child.starts_at is None or self.clock.now() >= child.starts_at

    async def _start(self, child: Child) -> None:
        child.process = await asyncio.create_subprocess_exec(
            *child.spec.argv,
            env=dict(child.spec.env),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            # A session of its own: Ctrl-C reaches the parent alone, which then ends the children in order.
            start_new_session=True,
        )
        child.started_at, child.starts_at = self.clock.now(), None
        child.watching = asyncio.create_task(self._watch(child.spec.role, child.process))
        self.events.emit(ChildStarted(child.spec.role, child.process.pid))

    async def _watch(self, role: str, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            prefix = f"{role:<9} | " if self.prefixed else ""
            self.out.write(f"{prefix}{line.decode(errors='replace').rstrip()}\n")
            self.out.flush()
        await process.wait()
        self.doorbell.ring()

    def _bury(self, child: Child, exit_code: int) -> None:
        assert child.process is not None
        assert child.started_at is not None
        now = self.clock.now()
        child.ends = 1 if now - child.started_at > HEALTHY_AFTER else child.ends + 1
        hopeless = exit_code == EXIT_CONFIG
        wait = None if hopeless else equal_jitter(exponential(child.ends, RESTART_BASE, RESTART_CAP), self.chance())
        self.events.emit(ChildEnded(child.spec.role, child.process.pid, exit_code, wait))
        child.process = None
        child.starts_at = now + wait if wait is not None else None
        if hopeless:
            self.exit_code = exit_code
            self.stop.set()

    async def _end(self, role: str, process: asyncio.subprocess.Process, grace: timedelta) -> None:
        process.terminate()
        try:
            async with asyncio.timeout(grace.total_seconds()):
                await process.wait()
        except TimeoutError:
            os.killpg(process.pid, signal.SIGKILL)
            self.events.emit(ChildEnded(role, process.pid, await process.wait(), None))


def die_with_parent(parent: int) -> bool:
    """Ask Linux to end this process when its parent does, however it ends. False: the parent is gone already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    # Asked after, not before: a parent that dies in between is noticed by one of the two.
    return os.getppid() == parent
