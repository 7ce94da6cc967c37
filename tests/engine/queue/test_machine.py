"""Compare a queue on SQLite with a model of the queue, over random sequences of operations."""

import asyncio
import tempfile
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from batuta.kernel.ids import Ids
from batuta.kernel.leases import LeaseHolder
from batuta.queue.item import ItemState, Lease, NewItem
from batuta.queue.outcome import Settlement
from batuta.stores import connect
from batuta.stores.sql.database import AsJson, Database
from batuta.stores.sql.migrations import Migrator, engine_migrations
from batuta.stores.sql.queries import query_of
from batuta.stores.sql.queue.store import SqlQueue
from batuta.stores.sql.tables.controls import SqlSwitches
from batuta.tasks.registry import TASKS
from batuta.testing import EventRecorder, FakeClock
from tests.faults.figures import LONG

# Folder in memory. Power loss is not tested here, and without syncs the test runs more examples.
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
LEASE = timedelta(seconds=30)
OWNERS = ("ann", "ben", "cid")
READY, RUNNING, DONE, DEAD, CANCELLED = "queued", "in_progress", "complete", "failed", "cancelled"
SWITCH = "pause.queue.default"
ALL = query_of("all", "SELECT * FROM tasks", writes=False)

spans = st.sampled_from([0, 1, 7, 29, 30, 31, 90]).map(lambda seconds: timedelta(seconds=seconds))
keys = st.sampled_from([None, None, "a", "b", "c"])
priorities = st.sampled_from([None, 0, 1, 1, -5, 7])
chance = st.randoms(use_true_random=False)


@dataclass(frozen=True)
class ModelRow:
    """The expected values of a row in the queue's table."""

    state: str
    available_at: datetime
    key: str | None = None
    priority: int = 0
    attempts: int = 0
    crashes: int = 0
    lease_until: datetime | None = None
    is_unwanted: bool = False

    @property
    def is_alive(self) -> bool:
        return self.state in (READY, RUNNING)


@dataclass
class Owner:
    """A lease owner, and the leases that it believes it holds: all that it received, except those reported as lost."""

    lease_holder: LeaseHolder
    leases: list[Lease] = field(default_factory=list)


@cache
def migrated() -> bytes:
    """Return the file content of an empty, migrated database."""

    async def migrate(file: Path) -> None:
        clock = FakeClock()
        database = connect(f"sqlite:///{file}", clock)
        await database.open()
        await Migrator(database, engine_migrations(), clock, EventRecorder()).migrate()
        await database.close()

    with tempfile.TemporaryDirectory(dir=MEMORY) as folder, asyncio.Runner() as runner:
        runner.run(migrate(Path(folder) / "empty.db"))
        return (Path(folder) / "empty.db").read_bytes()


class QueueMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=MEMORY)
        self.runner = asyncio.Runner()
        self.clock = FakeClock()
        self.model: dict[str, ModelRow] = {}
        self.gone: set[str] = set()
        self.is_paused = False
        self.hands = {name: Owner(LeaseHolder(owner=name, lease=LEASE)) for name in OWNERS}
        # All leases that were given and are no longer current. A write with one of them must change nothing.
        self.stale: list[Lease] = []
        self.given: list[Lease] = []

    @initialize()
    def open(self) -> None:
        file = Path(self.folder.name) / "queue.db"
        file.write_bytes(migrated())
        self.runner.run(self._open(file))

    async def _open(self, file: Path) -> None:
        self.database: Database = connect(f"sqlite:///{file}", self.clock)
        await self.database.open()
        ids, events = Ids(self.clock), EventRecorder()
        self.queue = SqlQueue(self.database, TASKS, ids, self.clock, queue="default", own_time=True)
        self.switches = SqlSwitches(self.database, ids, events)

    def teardown(self) -> None:
        self.runner.run(self.database.close())
        self.runner.close()
        self.folder.cleanup()

    @rule(wanted=st.lists(st.tuples(keys, spans, priorities), min_size=1, max_size=4))
    def put(self, wanted: list[tuple[str | None, timedelta, int | None]]) -> None:
        now = self.clock.now()
        items = [
            NewItem(
                values={"name": "f", "args": AsJson([[], {}])},
                key=key,
                priority=priority,
                available_at=now + delay if delay else None,
            )
            for key, delay, priority in wanted
        ]
        ids = self.runner.run(self.queue.put(items))
        taken = {each.key for each in self.model.values() if each.is_alive and each.key is not None}
        for id, (key, delay, priority) in zip(ids, wanted, strict=True):
            if id is not None:
                assert key not in taken
                self.model[id] = ModelRow(READY, now + delay, key, priority or 0)
        # Every item without a key is accepted, and one item of each free key.
        fresh = {key for key, _, _ in wanted if key is not None} - taken
        accepted = [key for id, (key, _, _) in zip(ids, wanted, strict=True) if id is not None]
        assert sorted(key for key in accepted if key is not None) == sorted(fresh)
        assert accepted.count(None) == sum(key is None for key, _, _ in wanted)

    @rule(owner=st.sampled_from(OWNERS), limit=st.integers(1, 5), is_reversed=st.booleans())
    def claim(self, owner: str, limit: int, is_reversed: bool) -> None:
        hand, now = self.hands[owner], self.clock.now()
        due = [id for id, each in self.model.items() if each.state == READY and each.available_at <= now]
        result = self.runner.run(self.queue.settle_and_claim([], hand.lease_holder, limit, reversed=is_reversed))
        self._claimed(hand, list(result.leases), due, limit, is_reversed)

    def _claimed(self, hand: Owner, leases: list[Lease], due: list[str], limit: int, is_reversed: bool = False) -> None:
        assert len(leases) == (0 if self.is_paused else min(limit, len(due)))
        assert {lease.id for lease in leases} <= set(due)
        sign = -1 if is_reversed else 1
        taken = sorted(sign * self.model[lease.id].priority for lease in leases)
        assert taken == sorted(sign * self.model[id].priority for id in due)[: len(taken)]
        for lease in leases:
            before = self.model[lease.id]
            self.model[lease.id] = replace(
                before, state=RUNNING, attempts=before.attempts + 1, lease_until=self.clock.now() + LEASE
            )
            assert lease.attempt == before.attempts + 1
            assert lease.is_last_chance == (before.crashes + 1 >= TASKS.crash_cap)
            hand.leases.append(lease)
            self.given.append(lease)

    @precondition(lambda self: any(hand.leases for hand in self.hands.values()))
    @rule(random=chance, how=st.sampled_from(["done", "retry", "snooze", "dead", "cancelled"]), delay=spans)
    def settle(self, random: Any, how: str, delay: timedelta) -> None:
        hand = random.choice([each for each in self.hands.values() if each.leases])
        some = random.sample(hand.leases, random.randint(1, len(hand.leases)))
        at = self.clock.now() + delay
        settlement = {
            "done": Settlement(state=ItemState.DONE, result={"n": 1}, keep=delay),
            "retry": Settlement(state=ItemState.READY, wait=delay, error="again"),
            "snooze": Settlement(state=ItemState.READY, available_at=at, gives_back=True, error="later"),
            "dead": Settlement(state=ItemState.DEAD, error="no"),
            "cancelled": Settlement(state=ItemState.CANCELLED, error="stop"),
        }[how]
        limit = random.choice([0, 0, 2])
        due = [id for id, each in self.model.items() if each.state == READY and each.available_at <= self.clock.now()]
        valid = [lease for lease in some if lease not in self.stale]
        result = self.runner.run(
            self.queue.settle_and_claim([(lease, settlement) for lease in some], hand.lease_holder, limit)
        )
        assert [lease.id for lease in result.lost] == [lease.id for lease in some if lease not in valid]
        for lease in some:
            hand.leases.remove(lease)
            if lease in valid:
                self._settled(lease, how, at)
                due += [lease.id] if self.model[lease.id].state == READY and delay <= timedelta(0) else []
                self.stale.append(lease)
        if limit:
            self._claimed(hand, list(result.leases), due, limit)

    def _settled(self, lease: Lease, how: str, at: datetime) -> None:
        before = replace(self.model[lease.id], lease_until=None, crashes=0)
        match how:
            case "done":
                after = replace(before, state=DONE)
            case "dead":
                after = replace(before, state=DEAD)
            case "cancelled":
                after = replace(before, state=CANCELLED)
            case _:
                attempts = before.attempts - (how == "snooze")
                state = CANCELLED if before.is_unwanted else READY
                after = replace(before, state=state, available_at=at, attempts=attempts)
        self.model[lease.id] = after

    @precondition(lambda self: self.stale)
    @rule(random=chance)
    def settle_with_stale_lease(self, random: Any) -> None:
        """Settle an item with a stale lease. The invariants check that no row changes."""
        living = [lease for lease in self.stale if lease.id in self.model and self.model[lease.id].is_alive]
        lease = random.choice(living or self.stale)
        lease_holder = self.hands["ann"].lease_holder
        result = self.runner.run(
            self.queue.settle_and_claim([(lease, Settlement(state=ItemState.DEAD, error="x"))], lease_holder, 0)
        )
        assert [each.id for each in result.lost] == [lease.id]
        assert lease.id in self.runner.run(self.queue.renew([lease], lease_holder)).lost
        ran: list[object] = []

        async def effect(transaction: object) -> None:
            ran.append(transaction)

        emitting = Settlement(
            state=ItemState.DONE, follow_ups=(NewItem(values={"name": "g", "args": AsJson([])}),), effect=effect
        )
        assert not self.runner.run(self.queue.conclude(lease, emitting))
        assert not ran

    @rule(owner=st.sampled_from(OWNERS))
    def renew(self, owner: str) -> None:
        hand = self.hands[owner]
        renewed = self.runner.run(self.queue.renew(hand.leases, hand.lease_holder))
        assert set(renewed.lost) == {lease.id for lease in hand.leases if lease in self.stale}
        held = [lease for lease in hand.leases if lease not in self.stale]
        assert set(renewed.cancelled) == {lease.id for lease in held if self.model[lease.id].is_unwanted}
        hand.leases = held
        for lease in held:
            self.model[lease.id] = replace(self.model[lease.id], lease_until=self.clock.now() + LEASE)

    @rule(owner=st.sampled_from(OWNERS))
    def crash(self, owner: str) -> None:
        """Simulate the crash of a lease owner: forget its leases. The rows do not change."""
        self.hands[owner].leases = []

    @rule(by=spans)
    def time_passes(self, by: timedelta) -> None:
        self.clock.step(by)

    @rule()
    def expire_all_leases(self) -> None:
        self.clock.step(LEASE + timedelta(seconds=1))
        self.rescue(20)

    @rule(limit=st.integers(1, 20))
    def rescue(self, limit: int) -> None:
        now = self.clock.now()
        over = {id for id, each in self.model.items() if each.lease_until is not None and each.lease_until <= now}
        rescued = self.runner.run(self.queue.rescue(limit))
        assert len(rescued) == min(limit, len(over))
        assert {each.id for each in rescued} <= over
        for each in rescued:
            before = self.model[each.id]
            crashes = before.crashes + 1
            state = CANCELLED if before.is_unwanted else DEAD if crashes >= TASKS.crash_cap else READY
            assert (each.crashes, each.state.value) == (
                crashes, {CANCELLED: "cancelled", DEAD: "dead", READY: "ready"}[state],
            )  # fmt: skip
            self.model[each.id] = replace(before, state=state, crashes=crashes, lease_until=None)
            self.stale += [lease for lease in self.given if lease.id == each.id and lease not in self.stale]

    @precondition(lambda self: self.model)
    @rule(random=chance)
    def cancel(self, random: Any) -> None:
        id = random.choice(list(self.model))
        before = self.model[id]
        assert self.runner.run(self.queue.cancel(id, "not wanted")) == before.is_alive
        if before.state == READY:
            self.model[id] = replace(before, state=CANCELLED)
        elif before.state == RUNNING:
            self.model[id] = replace(before, is_unwanted=True)

    @precondition(lambda self: any(each.state == DEAD for each in self.model.values()))
    @rule(random=chance, discards=st.booleans())
    def revive_or_discard_dead_item(self, random: Any, discards: bool) -> None:
        id = random.choice([id for id, each in self.model.items() if each.state == DEAD])
        before = self.model[id]
        if discards:
            assert self.runner.run(self.queue.discard(id))
            del self.model[id]
            self.gone.add(id)
            return
        rivals = {each.key for each in self.model.values() if each.is_alive and each.key is not None}
        assert self.runner.run(self.queue.revive(id)) == (before.key not in rivals)
        if before.key not in rivals:
            self.model[id] = replace(
                before, state=READY, available_at=self.clock.now(), attempts=0, crashes=0, is_unwanted=False
            )

    @precondition(lambda self: self.model)
    @rule(random=chance)
    def refuse_decision_about_live_item(self, random: Any) -> None:
        id = random.choice(list(self.model) + list(self.gone))
        if id in self.gone or self.model[id].state != DEAD:
            assert not self.runner.run(self.queue.revive(id))
            assert not self.runner.run(self.queue.discard(id))

    @rule(on=st.booleans())
    def pause(self, on: bool) -> None:
        self.is_paused = on
        self.runner.run(self.switches.set(SWITCH, on, by="test", reason="-", now=self.clock.now()))

    @invariant()
    def rows_match_the_model(self) -> None:
        rows = {row["id"]: row for row in self.runner.run(self.database.all(ALL))}
        assert rows.keys() == self.model.keys()  # no row is lost or added
        for id, wanted in self.model.items():
            row = rows[id]
            found = ModelRow(
                row["status"], row["available_at"], row["unique_key"], row["priority"], row["attempts"],
                row["crashes"], row["lease_until"], row["cancel_requested"],
            )  # fmt: skip
            assert found == wanted
            assert (row["finished_at"] is None) == wanted.is_alive
            assert (row["owner"] is None) == (wanted.state != RUNNING)
            assert not (wanted.is_alive and row["expires_at"])  # otherwise the pruner would delete a live item

    @invariant()
    def no_item_has_two_owners(self) -> None:
        held = [lease.id for hand in self.hands.values() for lease in hand.leases if lease not in self.stale]
        assert len(held) == len(set(held))
        assert all(self.model[id].state == RUNNING for id in held)

    @invariant()
    def live_keys_are_unique(self) -> None:
        living = [each.key for each in self.model.values() if each.is_alive and each.key is not None]
        assert len(living) == len(set(living))

    @invariant()
    def next_item_is_known(self) -> None:
        waiting = [each.available_at for each in self.model.values() if each.state == READY]
        assert self.runner.run(self.queue.next_at()) == min(waiting, default=None)


QueueMachine.TestCase.settings = settings(
    max_examples=500 if LONG else 60, stateful_step_count=50, deadline=None, phases=[Phase.reuse, Phase.generate]
)
test_a_queue_is_what_its_model_says = QueueMachine.TestCase
