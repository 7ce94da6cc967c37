"""Claims, runs and settles items of one queue.

        ┌──────────── bell: something ended, something came, or the next is due ───────────┐
        ▼                                                                                  │
    [ tick: settle what ended and claim what fits, in one transaction ] ──▶ start handlers ┘

A handler's result is a value; what it means for the item is decided by ``settle``. A lease that was lost makes the handler's work
worthless: it is cancelled, and nothing it says is written.

What an item does is its own affair: a handler that exits, raises what it should not, or answers what cannot be written fails, and
its neighbours do not notice. Of items that have one crash left, a worker runs one at a time: whichever of them kills the process,
the others are not taken for the cause with it.
"""

import asyncio
import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count

from batuta.kernel.clock import Clock
from batuta.kernel.errors import (
    CancelIgnored,
    StatementRefused,
    StoreConflict,
    StoreTimeout,
    TransactionMisuse,
)
from batuta.kernel.events import Events, ItemCrashed, ItemLost, ItemOverdue, ItemsClaimed, ItemsSettled
from batuta.kernel.trace import bind_after
from batuta.kernel.waiting import first_of, insist
from batuta.queue.attempt import Attempts, Running
from batuta.queue.item import ItemState, Lease
from batuta.queue.lease import Tenure
from batuta.queue.lease_keeper import LeaseKeeper, recheck_after
from batuta.queue.outcome import Failed
from batuta.queue.recipe import SPOILT, UNKNOWN, Recipe
from batuta.queue.settle import Settlement, given_back, put_off
from batuta.queue.stopping import Stop, Stopping
from batuta.queue.storable import MAX_PAYLOAD
from batuta.queue.store import Endings, QueueStore, Renewed, Turned
from batuta.queue.unsettled import Unsettled
from batuta.supervise.loop import Again, Doorbell, Idle, Pace
from batuta.supervise.progress import bind as bind_progress
from batuta.supervise.shutdown import Phase, Shutdown
from batuta.supervise.stacks import of_task

# Every so many claims the least urgent come first, so that nobody starves.
TURN_OF_THE_LAST = 8
# For a run by schedule that is stopped: what it began may end, or is given back, which a busy database may take its time for.
GRACE = timedelta(seconds=1)
GIVEN_BACK_WITHIN = timedelta(seconds=5)
# Nothing of ours: what a table of somebody's own refuses to hold.
_REFUSALS = (StatementRefused, StoreConflict, TransactionMisuse, TypeError, ValueError, OverflowError)
# An ending whose effect times out alone this often has failed: retrying it cannot help.
MOST_TIMEOUTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPolicy:
    limit: int = 20  # handlers at a time
    batch: int = 500  # items in one claim, at most; and half the places: one half works while the other is settled
    # Nobody may have told us of what came: so often the table is asked, whatever else is known.
    look_every: timedelta = timedelta(seconds=10)
    max_result: int = MAX_PAYLOAD  # bytes of JSON

    @property
    def portion(self) -> int:
        return min(self.batch, (self.limit + 1) // 2)


class Worker:
    def __init__(
        self,
        name: str,
        store: QueueStore,
        recipe_of: Callable[[Lease], Recipe | None],
        tenure: Tenure,
        policy: WorkerPolicy,
        clock: Clock,
        events: Events,
        claims: Iterator[int] | None = None,
    ) -> None:
        """``recipe_of`` gives None for an item nobody here knows how to work on. ``claims`` counts those of others as well."""
        self.name = f"worker:{name}"
        self.doorbell = Doorbell()
        self._queue = name
        self._store = store
        self._recipe_of = recipe_of
        self._tenure = tenure
        self._policy = policy
        self._clock = clock
        self._events = events
        self._running: dict[str, Running] = {}
        # Handlers that were cancelled, until they have taken notice; some of their items are somebody else's by now.
        self._stopping = Stopping(clock)
        self._deaf: CancelIgnored | None = None
        # One clock for all time limits: an alarm for each item would cost more than most items.
        self._limits: list[tuple[float, str]] = []
        self._unsettled = Unsettled(clock, recheck_after(tenure.lease), tenure.lease / 3)
        self._took: list[float] = []  # by handlers, since it was last told
        # Claimed, and started as soon as the next turn is on its way: while the database is busy with that, they run.
        self._waiting: list[Lease] = []
        self._claims = claims or count(1)
        self._is_handing_back = False
        self._attempts = Attempts(name, store, clock, events, policy.max_result, self._stop_overdue_effect)

    async def tick(self) -> Pace:
        self._start_waiting()
        self._stop_overdue()
        self._give_up_the_deaf()
        if self._deaf is not None:
            await self._turn(0)
            raise self._deaf
        if self._unsettled.is_careful:
            await self._turn(0)
            return Again()
        asked = min(self._policy.portion, self._policy.limit - len(self._running))
        if asked <= 0 and not self._unsettled.is_ready:
            return Idle(self._soon())
        looked_at, came_back = self._clock.now(), self._unsettled.returns_soon
        claimed = await self._turn(max(asked, 0))
        is_full = claimed == asked > 0
        if not (is_full and len(self._running) + len(self._waiting) < self._policy.limit):
            self._start_waiting()
        if self._unsettled.is_ready or self._waiting:
            return Again()
        if is_full:
            return Idle(self._soon())
        return Idle(await self._wake_at(looked_at, came_back=came_back))

    async def once(self, most: int) -> int:
        """Work on what is due now, at most so many, and return when all of it is settled: for a run by schedule."""
        keeper = LeaseKeeper(self._tenure, self._clock)
        keeper.add(self)
        async with keeper.ticking():
            try:
                return await self._work_off(most)
            except BaseException:
                # No supervisor drains this worker.
                await first_of(self.drain(GRACE), self._clock.sleep(GIVEN_BACK_WITHIN.total_seconds()))
                raise

    async def _work_off(self, most: int) -> int:
        claimed = 0
        for _ in range(most):
            more = await self._turn(min(self._policy.portion, most - claimed))
            self._start_waiting()
            await self._finish()
            claimed += more
            if self._deaf is not None:
                raise self._deaf
            if not more or claimed == most:
                break
        return claimed

    def held(self) -> Sequence[Lease]:
        """Every lease this worker answers for: of items that run, that wait for their start, and that are not settled yet."""
        running = (each.lease for each in self._running.values())
        unsettled = (lease for lease, _ in self._unsettled)
        return list({(lease.id, lease.fence): lease for lease in (*running, *self._waiting, *unsettled)}.values())

    async def renew(self, leases: Sequence[Lease], tenure: Tenure) -> Renewed:
        return await self._store.renew(leases, tenure)

    def lose(self, leases: Sequence[Lease]) -> None:
        for lease in leases:
            self._waiting = [each for each in self._waiting if each != lease]
            # An item that is being settled may have been settled a moment ago: the settlement tells whose it was.
            if (running := self._started(lease)) is not None and not running.is_settling:
                self._let_go(running)
                self.doorbell.ring()

    def stop_cancelled(self, leases: Sequence[Lease]) -> None:
        for lease in leases:
            if (running := self._started(lease)) is not None:
                self._stop(running, Stop.UNWANTED)
                self.doorbell.ring()

    def _started(self, lease: Lease) -> Running | None:
        """The handler of this very lease: the item may have been claimed again under another fence."""
        running = self._running.get(lease.id)
        return running if running is not None and running.lease.fence == lease.fence else None

    async def drain(self, grace: timedelta) -> None:
        """Let handlers end; cancel the others and hand their items back, without counting the attempt.

        The lease keeper renews their leases until the drain is over.
        """
        self._start_waiting()
        shutdown = Shutdown.begin(self._clock, grace)
        await shutdown.within(Phase.FINISH, insist(self._finish, self._clock))
        self._is_handing_back = True
        for running in list(self._running.values()):
            if running.has_begun:
                running.is_cancelled = True
                running.task.cancel()
            else:
                self._hand_back(running)
        await shutdown.within(Phase.CANCEL, insist(self._finish, self._clock))
        await insist(self._settle_all, self._clock)
        # A handler that ignores its cancellation keeps its item until the lease expires.
        await shutdown.within(Phase.HAND_BACK, insist(self._finish, self._clock))

    def _hand_back(self, running: Running) -> None:
        if self._running.pop(running.lease.id, None) is running:
            settlement = given_back()._replace(untried=not running.has_begun)
            self._unsettled.add(running.lease, settlement)

    async def _finish(self) -> None:
        while self._running:
            tasks = [running.task for running in self._running.values()]
            soon = self._clock.sleep(max(0.0, (self._soon() - self._clock.now()).total_seconds()))
            await first_of(asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED), soon)
            self._stop_overdue()
            self._give_up_the_deaf()
            await self._turn(0)
        await self._settle_all()

    async def _settle_all(self) -> None:
        """Write every ending. Rows that are locked are waited for; the caller limits the time."""
        while self._unsettled:
            await self._turn(0)
            if (recheck_at := self._unsettled.recheck_at) is not None and not self._unsettled.is_ready:
                await self._clock.sleep(recheck_at - self._clock.monotonic())

    async def _turn(self, limit: int) -> int:
        if not self._unsettled.is_ready and not limit:
            return 0
        endings = self._unsettled.take()
        is_last_first = limit > 0 and next(self._claims) % TURN_OF_THE_LAST == 0
        try:
            leases = await self._settle_and_claim(endings, limit, is_last_first)
        except StoreTimeout:
            self._split(endings)
            raise
        except BaseException:
            self._unsettled.put_back()  # the endings happened: they are written when the store is back
            raise
        self._unsettled.progress()
        if leases:
            self._events.emit(ItemsClaimed(self._queue, _waited(leases, self._clock.now())))
        for lease in leases:
            if (before := self._running.get(lease.id)) is not None:
                self._let_go(before)  # lost and claimed again, before we were told
        self._waiting += [lease for lease in leases if not lease.is_last_chance]
        suspects = [lease for lease in leases if lease.is_last_chance]
        for lease in await self._chosen(suspects) if suspects else ():
            self._start(lease)
        return len(leases)

    async def _settle_and_claim(self, endings: Endings, limit: int, is_last_first: bool) -> Sequence[Lease]:
        try:
            turned = await self._store.turn(endings, self._tenure, limit, reversed=is_last_first)
        except _REFUSALS as error:
            if not endings:
                raise
            await self._settle_apart(endings, error)
            return ()
        self._note_written(endings, turned)
        return turned.leases

    async def _settle_apart(self, endings: Endings, refusal: Exception) -> None:
        """The store refuses one of these: settle the halves, then single endings, so that it harms no other."""
        if len(endings) == 1:
            await self._settle_refused(*endings[0], refusal)
            return
        half = len(endings) // 2
        for part in (endings[:half], endings[half:]):
            try:
                turned = await self._store.turn(part, self._tenure, 0)
            except _REFUSALS as error:
                await self._settle_apart(part, error)
            else:
                self._note_written(part, turned)

    async def _settle_refused(self, lease: Lease, settlement: Settlement, refusal: Exception) -> None:
        failed = self._failed_settlement(lease, settlement, refusal)
        try:
            turned = await self._store.turn([(lease, failed)], self._tenure, 0)
        except _REFUSALS:
            turned = Turned((), [lease])  # its table accepts no ending at all: the lease decides
        self._note_written([(lease, failed)], turned)

    def _failed_settlement(self, lease: Lease, settlement: Settlement, error: Exception) -> Settlement:
        """The item failed while it was settled. A refused effect may succeed the next time, a refused ending does not."""
        self._events.emit(ItemCrashed(self._queue, lease.id, error))
        why = f"{type(error).__name__} while it was settled; the log has the traceback"
        if settlement.effect is None:
            return Settlement(state=ItemState.DEAD, error=why)
        recipe = self._recipe_of(lease) or UNKNOWN
        return recipe.settle(lease, Failed(why), recipe.retry)

    def _split(self, endings: Endings) -> None:
        """A turn timed out: the next ones settle fewer items, until the one that blocks is alone."""
        if self._unsettled.time_out() >= MOST_TIMEOUTS and endings[0][1].effect is not None:
            lease, settlement = endings[0]
            failed = self._failed_settlement(lease, settlement, StoreTimeout(where=self._queue, why="its effect"))
            self._unsettled.written([lease])
            self._unsettled.add(lease, failed)

    def _note_written(self, endings: Endings, turned: Turned) -> None:
        unchecked = {(lease.id, lease.fence) for lease in turned.unchecked}
        settled = [each for each in endings if (each[0].id, each[0].fence) not in unchecked] if unchecked else endings
        self._unsettled.written([lease for lease, _ in settled])
        self._unsettled.defer(turned.unchecked)
        if settled:
            self._tell(settled, turned.lost)
        for lease in turned.lost:
            self._events.emit(ItemLost(self._queue, lease.id))

    def _start_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for lease in waiting:
            self._start(lease)

    async def _chosen(self, suspects: Sequence[Lease]) -> Sequence[Lease]:
        """Of those that have one crash left, at most one. The others are given back before it starts, for it may kill us."""
        has_one = any(running.lease.is_last_chance for running in self._running.values())
        chosen = () if has_one else suspects[:1]
        for n, lease in enumerate(suspects[len(chosen) :], start=1):
            self._unsettled.add(lease, put_off(n * PUT_OFF))
        try:
            await self._turn(0)
        except BaseException:
            for lease in chosen:
                self._unsettled.add(lease, put_off(timedelta(0)))
            raise
        return chosen

    def _start(self, lease: Lease) -> None:
        recipe = SPOILT if lease.spoilt else self._recipe_of(lease) or UNKNOWN
        running = Running(lease, recipe, self._clock.monotonic() + recipe.timeout.total_seconds())
        running.task = asyncio.create_task(self._work(running))
        self._running[lease.id] = running
        if len(self._limits) > 2 * len(self._running) + self._policy.batch:
            self._limits = [(each.overdue_at, id) for id, each in self._running.items()]
            heapq.heapify(self._limits)
        else:
            heapq.heappush(self._limits, (running.overdue_at, lease.id))

    async def _work(self, running: Running) -> None:
        bind_after(running.recipe.traceparent(running.lease))
        bind_progress(None)  # a handler's progress is not its worker's
        try:
            settlement = await self._attempts.handle(running)
            running.is_settling = True
            self._stopping.heard(running.task)
            began = running.overdue_at - running.recipe.timeout.total_seconds()
            self._took.append(max(0.0, self._clock.monotonic() - began))
            if not settlement.goes_with_others:
                match await self._attempts.conclude(running, settlement):
                    case True:
                        self._tell([(running.lease, settlement)], ())
                        return
                    case False:
                        self._events.emit(ItemLost(self._queue, running.lease.id))
                        return
                    case Settlement() as failed:
                        settlement = failed
            if self._running.get(running.lease.id) is running:
                self._unsettled.add(running.lease, settlement)
        except asyncio.CancelledError:
            if self._is_handing_back and running.stopped is None:
                self._hand_back(running)
            raise
        finally:
            # A lease whose work is over must not be renewed.
            if self._running.get(running.lease.id) is running:
                del self._running[running.lease.id]
            self.doorbell.ring()

    def _stop_overdue(self) -> None:
        now = self._clock.monotonic()
        while self._limits and self._limits[0][0] <= now:
            self._overdue(*heapq.heappop(self._limits))

    def _overdue(self, at: float, id: str) -> None:
        running = self._running.get(id)
        if running is not None and running.overdue_at == at and not running.is_settling:
            self._events.emit(ItemOverdue(self._queue, id, running.recipe.timeout))
            self._stop(running, Stop.OVERDUE)

    def _stop_overdue_effect(self, running: Running) -> None:
        self._events.emit(ItemOverdue(self._queue, running.lease.id, running.recipe.timeout))
        self._stop(running, Stop.OVERDUE)
        self.doorbell.ring()  # an effect that ignores its cancellation is cancelled again in time

    def _stop(self, running: Running, why: Stop) -> None:
        if not running.is_settling or (running.in_effect and why is Stop.OVERDUE):
            running.stopped = why
            if running.has_begun:
                self._cancel(running)

    def _cancel(self, running: Running) -> None:
        running.is_cancelled = True
        self._stopping.cancel(running.task)

    def _give_up_the_deaf(self) -> None:
        """Handlers that go on although they were cancelled: their items are settled without them, and this process ends."""
        for task in self._stopping.deaf():
            running = next((each for each in self._running.values() if each.task is task), None)
            what = "a handler" if running is None else f"item {running.lease.id}"
            self._deaf = CancelIgnored(loop=self.name, what=what, stack=of_task(task))
            if running is not None:
                del self._running[running.lease.id]
                self._unsettled.add(running.lease, self._attempts.settlement_of_stopped(running))

    def _let_go(self, running: Running) -> None:
        """Another process owns the item. The handler is cancelled and not waited for: it may never take notice."""
        del self._running[running.lease.id]
        self._cancel(running)
        self._events.emit(ItemLost(self._queue, running.lease.id))

    async def _wake_at(self, looked_at: datetime, *, came_back: bool) -> datetime:
        due = await self._store.next_at()
        # What was due when we looked and was not taken cannot be taken now: it is held, or somebody else is at it. Asking
        # again at once would be asking without end.
        if due is None or (due <= looked_at and not came_back):
            return self._soon()
        return min(self._soon(), due)

    def _soon(self) -> datetime:
        """The next look at the table, time limit, repeated cancellation or deferred ending, whichever is first."""
        now = self._clock.now()
        looks_at = now + self._policy.look_every
        if not self._running:
            self._limits.clear()
        moments = [*(overdue_at for overdue_at, _ in self._limits[:1]), *self._stopping.moments]
        moments += [] if (recheck_at := self._unsettled.recheck_at) is None else [recheck_at]
        if not moments:
            return looks_at
        return min(looks_at, now + timedelta(seconds=max(0.0, min(moments) - self._clock.monotonic())))

    def _tell(self, endings: Endings, lost: Sequence[Lease]) -> None:
        counts: dict[str, int] = {}
        for lease, settlement in endings:
            if not lost or lease not in lost:
                counts[settlement.word] = counts.get(settlement.word, 0) + 1
        took, self._took = tuple(self._took), []
        self._events.emit(ItemsSettled(self._queue, counts, len(lost), took))


# How long an item waits whose neighbour has one crash left as well; the next one as long again.
PUT_OFF = timedelta(milliseconds=250)


def _waited(leases: Sequence[Lease], now: datetime) -> tuple[float, ...]:
    return tuple(max(0.0, (now - lease.due_at).total_seconds()) if lease.due_at else 0.0 for lease in leases)
