"""Worker: claims, runs and settles the items of one queue.

        ┌───────── wakeup: an item ended, an item was enqueued, or the next one is due ─────────┐
        ▼                                                                                         │
    [ tick: settle ended items and claim more, in one transaction ] ──▶ start their handlers ─────┘

``settle`` turns a handler's outcome into a settlement. When a lease is lost, the worker cancels the handler and writes
nothing. ``lease_keeper`` renews the leases. An item whose next crash makes it dead runs alone (``isolation``).
"""

import asyncio
import math
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import count

from batuta.kernel.calls.usercode import Returned
from batuta.kernel.clock import Clock, microseconds
from batuta.kernel.errors import CancelIgnored
from batuta.kernel.events import Events, ItemCrashed, ItemLost, ItemOverdue, ItemsClaimed
from batuta.kernel.leases import LeaseHolder
from batuta.kernel.storage.storable import MAX_PAYLOAD
from batuta.kernel.trace import bind_after
from batuta.kernel.values import dataclass
from batuta.kernel.waiting import cancel_and_wait, first_of, insist
from batuta.queue.executor import decide, execute
from batuta.queue.handler import UNREADABLE, ItemHandler, unknown_item_handler
from batuta.queue.item import Lease
from batuta.queue.outcome import EFFECT_CRASHED, HANDLER_CRASHED, WAITS_ALONE, Settlement, give_back, put_off
from batuta.queue.running import Cancellations, ItemStep, Running, Stop
from batuta.queue.store import QueueStore
from batuta.queue.worker.isolation import Isolation
from batuta.queue.worker.outage import find_outage, outcome_of
from batuta.queue.worker.runners import Runners
from batuta.queue.worker.settler import Settler, conclude
from batuta.supervise.lease_keeper import LeaseKeeper
from batuta.supervise.loop import Again, Idle, Pace, Wakeup
from batuta.supervise.shutdown import Phase, Shutdown, pass_phases
from batuta.supervise.stacks import task_stack

# One claim in this many takes the least urgent items first, so that low priorities do not starve.
REVERSED_EVERY = 8
# Time limits of a worker that runs once, after a stop request: for its handlers to finish, and for the whole drain.
ONE_SHOT_DRAIN_GRACE = timedelta(seconds=1)
ONE_SHOT_LIMIT = timedelta(seconds=5)
# How long an item that must run alone is postponed while another item holds the reservation. Each further item that
# must run alone is postponed by this much more.
PUT_OFF = timedelta(milliseconds=250)
# A wake-up that is this many seconds early is treated as a poll, because timers are rounded.
EARLY = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPolicy:
    limit: int = 20  # maximum number of concurrent handlers
    # maximum items per claim; at most half of ``limit``, so that one half runs while the other half is settled
    batch: int = 500
    # Interval at which the worker polls the table, because a wake-up may be lost.
    look_every: timedelta = timedelta(seconds=10)
    max_result: int = MAX_PAYLOAD  # maximum size of a result, in bytes of JSON

    @property
    def portion(self) -> int:
        return min(self.batch, (self.limit + 1) // 2)


class Worker:
    def __init__(
        self,
        name: str,
        store: QueueStore,
        handler_of: Callable[[Lease], ItemHandler | None],
        lease_holder: LeaseHolder,
        policy: WorkerPolicy,
        clock: Clock,
        events: Events,
        claims: Iterator[int] | None = None,
        isolation: Isolation | None = None,
    ) -> None:
        """Create a worker. In one process, all workers of the same queue share the counter ``claims``, and the workers
        of all queues share ``isolation``. ``handler_of`` returns None for an item whose handler is unknown.
        """
        self.name = f"worker:{name}"
        self.wakeup = Wakeup()
        self._queue = name
        self._store = store
        self._handler_of = handler_of
        self._lease_holder = lease_holder
        self._policy = policy
        self._clock = clock
        self._events = events
        self._running: dict[str, Running] = {}
        # Includes cancelled handlers of items that other processes own now.
        self._cancellations = Cancellations(clock)
        self._uncancellable: CancelIgnored | None = None
        self._runners = Runners(self._work, self._note_ended, clock)
        self._has_ended = False  # whether items have ended since the last call of ``_note_ended``
        # Earliest monotonic time at which a running item can be overdue. One number replaces a timer per item, because
        # a timer would cost more than most items.
        self._overdue_at = math.inf
        self._settler = Settler(name, store, lease_holder, handler_of, clock, events)
        self._unsettled = self._settler.unsettled
        # Claimed items that start when the next transaction is sent, so that the handlers run while the database
        # executes the transaction.
        self._waiting: list[Lease] = []
        self._claims = claims or count(1)
        self._unknown = unknown_item_handler(store.last_error)
        self._turn: asyncio.Task[int] | None = (
            None  # the settlement transaction of the drain that is in progress, if any
        )
        self._isolated: Lease | None = None  # a claimed item that must run alone and waits to start
        self._is_noted = False  # whether the isolated item's row records that the item has not started
        self._put_off_count = 0
        self._isolation = isolation or Isolation(clock)
        self._isolation.join(self)
        self._polls_at: float | None = None  # monotonic time of the next poll of a queue without waiting items

    @property
    def concurrency(self) -> int:
        return self._policy.limit

    async def tick(self) -> Pace:
        self._start_waiting()
        self._stop_overdue()
        self._give_up_uncancellable()
        if self._uncancellable is not None:
            await self._settle_and_claim(0)
            raise self._uncancellable
        if self._unsettled.is_careful:
            await self._settle_and_claim(0)
            return Again()
        await self._settler.release_strays(self.list_leases)
        await self._start_isolated()
        asked = self._free_places()
        if asked <= 0 and not self._unsettled.is_ready:
            return Idle(self._next_deadline())
        if await self._still_has_nothing():
            return Idle(self._next_deadline())
        looked_at, came_back = self._clock.now(), self._unsettled.returns_soon
        claimed = await self._settle_and_claim(asked)
        if self._isolated is not None:
            self._start_waiting()
            await self._start_isolated()
            return Again() if self._unsettled.is_ready else Idle(self._next_deadline())
        is_full = claimed == asked > 0
        if not (is_full and len(self._running) + len(self._waiting) < self._policy.limit):
            self._start_waiting()
        if self._unsettled.is_ready or self._waiting:
            return Again()
        if is_full:
            return Idle(self._next_deadline())
        return Idle(await self._wake_at(looked_at, came_back=came_back))

    def _free_places(self) -> int:
        """Return how many items the worker may claim now. The result is zero while an item has reserved the process to
        run alone.
        """
        free = min(self._policy.portion, self._policy.limit - len(self._running))
        return max(0, free) if self._isolation.may_claim else 0

    @property
    def tasks(self) -> "list[asyncio.Task[None]]":
        """The asyncio tasks of the items that have started."""
        return [each.task for each in self._running.values() if each.step is not ItemStep.CLAIMED]

    def is_busy(self) -> bool:
        return bool(self._running or self._waiting or self._settler.is_claiming or self._cancellations.due_times)

    async def once(self, most: int) -> int:
        """Run at most ``most`` due items, wait until all are settled, and return their number. Use this method if no
        supervisor runs the worker, for example in a scheduled job.
        """
        keeper = LeaseKeeper(self._lease_holder.lease, self._clock)
        keeper.add(self)
        self._isolation.join(self)
        async with keeper.ticking():
            try:
                return await self._run_due_items(most)
            except BaseException:
                # No supervisor drains this worker, so it drains itself.
                await first_of(self.drain(ONE_SHOT_DRAIN_GRACE), self._clock.sleep(ONE_SHOT_LIMIT.total_seconds()))
                raise
            finally:
                self._isolation.leave(self)

    async def _run_due_items(self, most: int) -> int:
        claimed = 0
        for _ in range(most):
            more = await self._settle_and_claim(min(self._free_places(), most - claimed))
            self._start_waiting()
            await self._finish()
            await self._finish_isolated()
            claimed += more
            if self._uncancellable is not None:
                raise self._uncancellable
            if not more or claimed == most:
                break
        return claimed

    async def _finish_isolated(self) -> None:
        while self._isolated is not None:
            await self._start_isolated()
            if self._isolated is not None:
                self.wakeup.clear()
                pause = max(0.0, (self._next_deadline() - self._clock.now()).total_seconds())
                await self._clock.wait(self.wakeup, pause)
            await self._finish()

    def list_leases(self) -> Sequence[Lease]:
        """Return every lease that this worker holds: leases on items that are running, waiting to start, or not settled
        yet.
        """
        running = (each.lease for each in self._running.values())
        unsettled = (lease for lease, _ in self._unsettled)
        isolated = () if self._isolated is None else (self._isolated,)
        leases = (*running, *self._waiting, *isolated, *unsettled)
        return list({(lease.id, lease.fence): lease for lease in leases}.values())

    async def renew_leases(self) -> bool:
        """Renew every lease, and stop the items that another process owns or whose cancellation was requested. Return
        whether any lease was not renewed because its row is locked.
        """
        if not (leases := self.list_leases()):
            return False
        renewed = await self._store.renew(leases, self._lease_holder)
        for lease in leases:
            if lease.id in renewed.lost:
                self._lose(lease)
            elif lease.id in renewed.cancelled and (running := self._running_of(lease)) is not None:
                self._stop(running, Stop.REQUESTED)
                self.wakeup.set()
        return bool(renewed.unchecked)

    def _lose(self, lease: Lease) -> None:
        self._waiting = [each for each in self._waiting if each != lease]
        if self._isolated == lease:
            self._isolated = None
            self._isolation.release(lease.id)
        # While the item is being settled, the settlement statement itself detects a lost lease.
        if (running := self._running_of(lease)) is not None and not running.is_settling:
            self._let_go(running)
            self.wakeup.set()

    def _running_of(self, lease: Lease) -> Running | None:
        """Return the running item that belongs to this lease, or None. The fence is compared, because the item may have
        been claimed again under another lease.
        """
        running = self._running.get(lease.id)
        return running if running is not None and running.lease.fence == lease.fence else None

    async def drain(self, grace: timedelta) -> None:
        """Let handlers finish within ``grace``. Then cancel the remaining handlers, and hand their items back without
        counting an attempt.
        """
        try:
            await pass_phases(self, Shutdown.begin(self._clock, grace))
        finally:
            if self._turn is not None:
                await cancel_and_wait(self._turn)

    def quiet(self) -> None:
        """Begin a shutdown: start the items that are already claimed, and hand back an item that is waiting to run
        alone.
        """
        self._start_waiting()
        if (isolated := self._isolated) is not None:
            self._isolated = None
            self._isolation.release(isolated.id)
            self._unsettled.add(isolated, give_back()._replace(untried=True))

    async def finish(self) -> None:
        await insist(self._finish, self._clock)

    def cancel(self) -> None:
        """Cancel the handlers that are still running. A handler that was already being stopped keeps its earlier stop
        reason.
        """
        for running in self._running.values():
            running.stop = running.stop or Stop.SHUTDOWN
            if running.step is not ItemStep.CLAIMED:
                running.task.cancel()

    async def hand_back(self, shutdown: Shutdown) -> None:
        """Write the settlements of cancelled handlers. Release items that name this process as their owner but that no
        worker received.
        """
        await insist(self._settle_all, self._clock)
        # A handler that ignores its cancellation keeps its item until the lease expires.
        await shutdown.run_within(Phase.HAND_BACK, self.finish())
        await insist(lambda: self._settler.release_strays(self.list_leases, at_once=True), self._clock)

    async def _finish(self) -> None:
        while self._running:
            self.wakeup.clear()
            soon = max(0.0, (self._next_deadline() - self._clock.now()).total_seconds())
            await self._clock.wait(self.wakeup, soon)
            self._stop_overdue()
            self._give_up_uncancellable()
            await self._settle()
        await self._settle_all()

    async def _settle_all(self) -> None:
        """Write the settlement of every ended item, and wait for locked rows. The caller sets the time limit."""
        while self._unsettled:
            await self._settle()
            if (recheck_at := self._unsettled.recheck_at) is not None and not self._unsettled.is_ready:
                await self._clock.sleep(recheck_at - self._clock.monotonic())

    async def _settle(self) -> None:
        """Write the settlements of ended items. If a shutdown phase ends during the transaction, let the transaction
        continue, because a rollback would only delay the settlements.
        """
        turn = self._turn = self._turn or asyncio.create_task(self._settle_and_claim(0))
        await asyncio.wait([turn])
        self._turn = None
        turn.result()

    async def _settle_and_claim(self, limit: int) -> int:
        if not self._unsettled.is_ready and not limit:
            return 0
        is_reversed = limit > 0 and next(self._claims) % REVERSED_EVERY == 0
        leases = await self._settler.settle_and_claim(limit, reversed=is_reversed)
        self._isolation.note_change()
        if leases:
            self._events.emit(ItemsClaimed(self._queue, _measure_waits(leases, microseconds(self._clock.now()))))
        for lease in leases:
            if (before := self._running.get(lease.id)) is not None:
                # The lease was lost, and this worker claimed the item again before the lease keeper detected the loss.
                self._let_go(before)
            if lease.is_last_chance and self._handler_of(lease) is not None:
                self._isolate(lease)
            else:
                self._waiting.append(lease)
        return len(leases)

    def _isolate(self, lease: Lease) -> None:
        """Reserve the process for an item whose next crash makes it dead. If another item has reserved the process,
        postpone this item.
        """
        self._put_off_count = 0 if self._isolated is None else self._put_off_count + 1
        if self._isolation.reserve(self, lease.id):
            self._isolated, self._is_noted = lease, False
        else:
            self._unsettled.add(lease, put_off(PUT_OFF * (1 + self._put_off_count)))

    async def _start_isolated(self) -> None:
        """Start the isolated item once no other handler or claim is active in the process. Postpone the item if that
        takes too long.

        The item's row records the start, because a crash of the process counts only for items that had started.
        """
        if (lease := self._isolated) is None or self._unsettled.is_ready:
            return  # settle first, so that a crash of the item loses no other item's settlement
        if self._isolation.is_alone:
            has_begun = await self._store.note(lease, None)
            if self._isolated != lease:
                return  # the worker lost the lease in the meantime
            if has_begun:
                self._isolated = None
                self._start([lease])
                return
        if self._clock.monotonic() >= self._isolation.gives_up_at:
            self._isolated = None
            self._unsettled.add(lease, put_off(self._isolation.release(lease.id, has_run=False)))
        elif not self._is_noted:
            self._is_noted = await self._store.note(lease, WAITS_ALONE())

    def _start_waiting(self) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            self._start(waiting)

    def _start(self, leases: Sequence[Lease]) -> None:
        now, timeout = self._clock.monotonic(), timedelta.max
        for lease in leases:
            handler = UNREADABLE if lease.unreadable else self._handler_of(lease) or self._unknown
            running = self._running[lease.id] = Running(lease, handler, now)
            self._runners.add(running)
            if handler.timeout < timeout:
                timeout = handler.timeout
        self._overdue_at = min(self._overdue_at, now + timeout.total_seconds())
        self._runners.start()

    async def _work(self, running: Running) -> None:
        bind_after(running.handler.traceparent, running.lease)
        try:
            settlement, error, took = await execute(running, self._clock, self._policy.max_result, self._queue)
            if running.stop is not None:
                self._cancellations.confirm(running.task)
            self._settler.took.append(took)
            if error is not None:
                settlement = await self._settlement_after(error, running, settlement)
            if not settlement.goes_with_others:
                await self._conclude(running, settlement)
            elif self._owns(running):
                self._unsettled.add(running.lease, settlement)
        except asyncio.CancelledError:
            if running.stop not in (Stop.SHUTDOWN, Stop.LOST):
                raise
            if running.stop is Stop.SHUTDOWN and self._owns(running):
                untried = running.step is ItemStep.CLAIMED
                self._unsettled.add(running.lease, give_back()._replace(untried=untried))
        finally:
            self._forget(running)

    async def _conclude(self, running: Running, settlement: Settlement) -> None:
        """Write an item's settlement in one transaction with its effect. If the effect fails, add the settlement for
        that failure to the next batch.
        """
        called = await conclude(running, settlement, self._store, self._clock, self._stop_overdue_effect)
        if isinstance(called, Returned) and isinstance(called.value, bool):
            self._settler.report_concluded(running.lease, settlement, is_written=called.value)
            return
        settlement, error = decide(running, called, EFFECT_CRASHED, self._policy.max_result)
        if (cause := error or running.outage) is not None:
            settlement = await self._settlement_after(cause, running, settlement)
        if self._owns(running):
            self._unsettled.add(running.lease, settlement)

    async def _settlement_after(self, error: Exception, running: Running, settlement: Settlement) -> Settlement:
        """Report an item's error, and return the item's settlement. If the engine's own database failed, the settlement
        follows the rules in ``outage``.
        """
        lease, handler = running.lease, running.handler
        self._events.emit(ItemCrashed(self._queue, lease.id, error, lease.task))
        if (outage := find_outage(error, self._store.where, handler.retry)) is None:
            return settlement
        last_error, now = await insist(lambda: self._store.last_error(lease.id), self._clock)
        return handler.settlement_of(lease.attempt, outcome_of(outage, last_error, now))

    def _owns(self, running: Running) -> bool:
        """Return whether this worker still owns the item: its lease is valid, and no other code has settled the item."""
        return self._running.get(running.lease.id) is running

    def _forget(self, running: Running) -> None:
        """Remove an item whose work has ended, so that the worker no longer renews its lease."""
        if self._owns(running):
            del self._running[running.lease.id]
        if running.lease.is_last_chance:
            self._isolation.release(running.lease.id)
        self._has_ended = True

    def _note_ended(self) -> None:
        """Wake the worker if items have ended. A runner calls this method once for all items that it ran without
        waiting.
        """
        if self._has_ended:
            self._has_ended = False
            self._isolation.note_change()
            self.wakeup.set()

    def _stop_overdue(self) -> None:
        now = self._clock.monotonic()
        if now < self._overdue_at:
            return
        for running in [each for each in self._running.values() if not each.is_settling and each.stop is None]:
            if running.overdue_at <= now:
                self._events.emit(ItemOverdue(self._queue, running.lease.id, running.handler.timeout))
                self._stop(running, Stop.OVERDUE)
        waits = [each.overdue_at for each in self._running.values() if each.overdue_at > now]
        self._overdue_at = min(waits, default=math.inf)

    def _stop_overdue_effect(self, running: Running) -> None:
        self._events.emit(ItemOverdue(self._queue, running.lease.id, running.handler.timeout))
        self._stop(running, Stop.OVERDUE)
        self.wakeup.set()  # if the effect ignores this cancellation, the worker's next tick cancels it again

    def _stop(self, running: Running, why: Stop) -> None:
        if why.applies_in(running.step):
            running.stop = why
            if running.step is not ItemStep.CLAIMED:
                self._cancellations.cancel(running.task)

    def _give_up_uncancellable(self) -> None:
        """Settle the items whose handlers ignore cancellation, before the process ends."""
        for task in self._cancellations.repeat():
            running = next((each for each in self._running.values() if each.task is task), None)
            what = "a handler" if running is None else f"item {running.lease.id}"
            self._uncancellable = CancelIgnored(loop=self.name, what=what, stack=task_stack(task))
            if running is not None and running.stop is not None:
                del self._running[running.lease.id]
                settlement, _ = decide(running, running.stop.result(), HANDLER_CRASHED, self._policy.max_result)
                self._unsettled.add(running.lease, settlement)

    def _let_go(self, running: Running) -> None:
        """Cancel the handler of an item that another process now owns. Return without waiting for the handler."""
        del self._running[running.lease.id]
        self._stop(running, Stop.LOST)
        self._events.emit(ItemLost(self._queue, running.lease.id))

    async def _still_has_nothing(self) -> bool:
        """Return whether a queue that had no waiting items still has none. This check is a single read and costs less
        than a claim, which also locks and commits.
        """
        polls_at, self._polls_at = self._polls_at, None
        if polls_at is None or self._clock.monotonic() < polls_at or self._unsettled.is_ready:
            return False
        return await self._next_at() is None

    async def _next_at(self) -> datetime | None:
        polls_at = self._clock.monotonic() + self._until_poll() - EARLY
        due = await self._store.next_at()
        self._polls_at = polls_at if due is None and not self._running else None
        return due

    async def _wake_at(self, looked_at: datetime, *, came_back: bool) -> datetime:
        due = await self._next_at()
        # The last claim did not return the due item, so the queue is paused or the item is leased. An immediate retry
        # would be a busy loop.
        if due is None or (due <= looked_at and not came_back):
            return self._next_deadline()
        return min(self._next_deadline(), due)

    def _until_poll(self) -> float:
        """Return the seconds until the next poll. All workers on a machine poll at multiples of the interval, so that
        the workers in a process wake together and share a statement.
        """
        every = self._policy.look_every.total_seconds()
        return every - self._clock.monotonic() % every

    def _next_deadline(self) -> datetime:
        """Return when the worker must wake next: for a poll, a time limit, a repeated cancellation or the retry of a
        settlement.
        """
        if not self._running:
            self._overdue_at = math.inf
        moments = [self._overdue_at, *self._cancellations.due_times]
        moments += [] if (recheck_at := self._unsettled.recheck_at) is None else [recheck_at]
        moments += [] if self._isolated is None else [self._isolation.gives_up_at]
        wait = min(min(moments) - self._clock.monotonic(), self._until_poll())
        return self._clock.now() + timedelta(seconds=max(0.0, wait))


def _measure_waits(leases: Sequence[Lease], now: int) -> tuple[float, ...]:
    return tuple([0.0 if lease.due is None or lease.due > now else (now - lease.due) / 1e6 for lease in leases])
