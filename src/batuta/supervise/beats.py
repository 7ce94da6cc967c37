"""A process's sign of life: that it lives, and which of its loops work."""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from typing import Protocol, TypeAlias

from batuta.kernel.clock import Clock
from batuta.supervise.loop import Doorbell, Idle, LoopPolicy, Pace
from batuta.supervise.supervisor import Running

EVERY = timedelta(seconds=10)
BEATING = LoopPolicy(every=EVERY, stuck_after=timedelta(minutes=1), backoff=timedelta(seconds=1), max_failures=1_000)

# How long a process that ended is remembered.
REMEMBERED = timedelta(days=7)

LoopsTold: TypeAlias = Mapping[str, Mapping[str, int | None]]


class BeatStore(Protocol):
    async def beat(
        self, worker_id: str, worker_name: str, loops: LoopsTold, *, now: datetime | None = None, status: str = "online"
    ) -> None: ...

    async def forget(self, *, before: datetime) -> int: ...


class Heart:
    """A loop: tells of all its neighbours. ``running`` is asked at each beat; ``now`` gives None for the database's own time."""

    name = "heart"

    def __init__(
        self,
        worker_id: str,
        role: str,
        store: BeatStore,
        running: Callable[[], Collection[Running]],
        clock: Clock,
        now: Callable[[], datetime | None],
    ) -> None:
        self.doorbell = Doorbell()
        self._worker_id = worker_id
        self._role = role
        self._store = store
        self._running = running
        self._clock = clock
        self._now = now
        self._has_forgotten = False

    async def tick(self) -> Pace:
        await self._beat("online")
        if not self._has_forgotten:
            await self._store.forget(before=self._clock.now() - REMEMBERED)
            self._has_forgotten = True
        return Idle()

    async def drain(self, grace: timedelta) -> None:
        """The last one says that nobody has to look for it."""
        await self._beat("offline")

    async def _beat(self, status: str) -> None:
        passed = self._clock.monotonic()
        loops = {
            each.loop.name: {"worked_ms_ago": _worked_ago(each, passed), "failures": each.failures}
            for each in self._running()
            if each.loop is not self
        }
        await self._store.beat(self._worker_id, self._role, loops, now=self._now(), status=status)


def _worked_ago(running: Running, passed: float) -> int | None:
    """A length, not an instant: clocks of two machines need not agree."""
    return None if running.worked_at is None else max(0, round((passed - running.worked_at) * 1000))
