"""The contract tests that every queue store must pass.

A subclass provides a fixture ``queue``: an empty ``QueueFixture`` on the store under test. The test advances the
store's clock.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from batuta.kernel.leases import LeaseHolder
from batuta.queue.item import ItemState, Lease, NewItem
from batuta.queue.outcome import Settlement
from batuta.queue.store import QueueStore
from batuta.testing.clock import FakeClock

ITEM_LEASE = timedelta(seconds=30)
SECOND = timedelta(seconds=1)
ANN, BEN = LeaseHolder(owner="ann", lease=ITEM_LEASE), LeaseHolder(owner="ben", lease=ITEM_LEASE)
DONE = Settlement(state=ItemState.DONE)
DEAD = Settlement(state=ItemState.DEAD, error="no")


@dataclass
class QueueFixture(ABC):
    """A store under test. ``item`` builds an item for the store's table. ``state`` translates an item's stored state
    into one of the contract's five states.
    """

    store: QueueStore
    clock: FakeClock

    @abstractmethod
    def item(self, **options: Any) -> NewItem: ...

    @abstractmethod
    async def state(self, id: str) -> str | None:
        """Return an item's state: ready, running, done, dead or cancelled. Return None if the item does not exist."""

    @abstractmethod
    async def pause(self, on: bool) -> None: ...

    async def put(self, *items: NewItem) -> list[str]:
        ids = await self.store.put(list(items) or [self.item()])
        return [id for id in ids if id is not None]

    async def claim(self, lease_holder: LeaseHolder = ANN, limit: int = 100, **options: Any) -> list[Lease]:
        return list((await self.store.settle_and_claim([], lease_holder, limit, **options)).leases)

    async def settle(self, leases: Sequence[Lease], settlement: Settlement = DONE) -> list[str]:
        """Settle the leases and return the ids of the items whose lease had been lost."""
        result = await self.store.settle_and_claim([(lease, settlement) for lease in leases], ANN, 0)
        return [lease.id for lease in result.lost]


class QueueContract:
    async def test_an_item_is_claimed_once(self, queue: QueueFixture) -> None:
        ids = await queue.put(queue.item(), queue.item())
        assert sorted(lease.id for lease in await queue.claim()) == sorted(ids)
        assert await queue.claim(BEN) == []
        assert [await queue.state(id) for id in ids] == ["running", "running"]

    async def test_an_empty_put_and_an_empty_claim_do_nothing(self, queue: QueueFixture) -> None:
        assert await queue.store.put([]) == []
        assert await queue.claim() == []
        assert await queue.store.next_at() is None

    async def test_a_claim_respects_its_limit_and_takes_the_oldest_first(self, queue: QueueFixture) -> None:
        now = queue.clock.now()
        late, early = await queue.put(queue.item(available_at=now), queue.item(available_at=now - SECOND))
        (first,) = await queue.claim(limit=1)
        (second,) = await queue.claim(limit=1)
        assert [first.id, second.id] == [early, late]

    async def test_concurrent_claims_share_the_items_without_overlap(self, queue: QueueFixture) -> None:
        ids = await queue.put(*(queue.item() for _ in range(40)))
        lease_holders = [LeaseHolder(owner=f"w{n}", lease=ITEM_LEASE) for n in range(20)]
        claims = await asyncio.gather(*(queue.claim(lease_holder, limit=7) for lease_holder in lease_holders))
        rest = await queue.claim(limit=100)
        taken = [lease.id for claim in (*claims, rest) for lease in claim]
        assert sorted(taken) == sorted(ids)

    async def test_an_attempt_is_counted_at_the_claim(self, queue: QueueFixture) -> None:
        await queue.put()
        (lease,) = await queue.claim()
        assert lease.attempt == 1

    async def test_a_delayed_item_waits_until_it_is_due(self, queue: QueueFixture) -> None:
        at = queue.clock.now() + 10 * SECOND
        await queue.put(queue.item(available_at=at))
        assert await queue.claim() == []
        assert await queue.store.next_at() == at
        queue.clock.step(10 * SECOND)
        assert len(await queue.claim()) == 1

    async def test_a_settled_item_is_done(self, queue: QueueFixture) -> None:
        (id,) = await queue.put()
        assert await queue.settle(await queue.claim()) == []
        assert await queue.state(id) in ("done", None)
        assert await queue.claim() == []

    async def test_a_retry_returns_at_its_time_and_counts(self, queue: QueueFixture) -> None:
        (id,) = await queue.put()
        at = queue.clock.now() + 60 * SECOND
        await queue.settle(await queue.claim(), Settlement(state=ItemState.READY, available_at=at, error="busy"))
        assert await queue.state(id) == "ready"
        assert await queue.claim() == []
        queue.clock.step(60 * SECOND)
        (lease,) = await queue.claim()
        assert lease.attempt == 2

    async def test_a_snooze_costs_no_attempt(self, queue: QueueFixture) -> None:
        await queue.put()
        at = queue.clock.now() + SECOND
        back = Settlement(state=ItemState.READY, available_at=at, gives_back=True, error="later")
        await queue.settle(await queue.claim(), back)
        queue.clock.step(SECOND)
        (lease,) = await queue.claim()
        assert lease.attempt == 1

    async def test_a_dead_item_keeps_its_evidence_until_revived_or_discarded(self, queue: QueueFixture) -> None:
        (id,) = await queue.put()
        await queue.settle(await queue.claim(), DEAD)
        assert await queue.state(id) == "dead"
        assert await queue.claim() == []
        assert await queue.store.revive(id)
        (lease,) = await queue.claim()
        assert lease.attempt == 1
        await queue.settle([lease], DEAD)
        assert await queue.store.discard(id)
        assert await queue.state(id) is None
        assert not await queue.store.revive(id)

    async def test_a_live_item_is_neither_revived_nor_discarded(self, queue: QueueFixture) -> None:
        (id,) = await queue.put()
        assert not await queue.store.revive(id)
        assert not await queue.store.discard(id)
        await queue.claim()
        assert not await queue.store.discard(id)

    async def test_an_expired_lease_is_rescued_exactly_once(self, queue: QueueFixture) -> None:
        (id,) = await queue.put()
        await queue.claim()
        assert await queue.store.rescue(10) == []
        queue.clock.step(ITEM_LEASE + SECOND)
        assert [rescued.id for rescued in await queue.store.rescue(10)] == [id]
        assert await queue.store.rescue(10) == []
        (lease,) = await queue.claim(BEN)
        assert lease.attempt == 2

    async def test_a_stale_worker_writes_nothing(self, queue: QueueFixture) -> None:
        (id,) = await queue.put()
        stale = await queue.claim()
        queue.clock.step(ITEM_LEASE + SECOND)
        await queue.store.rescue(10)
        assert await queue.settle(stale, DEAD) == [id]
        (fresh,) = await queue.claim(BEN)
        assert await queue.settle(stale, DEAD) == [id]
        assert await queue.state(id) == "running"
        assert await queue.settle([fresh]) == []

    async def test_an_item_is_settled_once(self, queue: QueueFixture) -> None:
        (id,) = await queue.put()
        leases = await queue.claim()
        assert await queue.settle(leases) == []
        assert await queue.settle(leases, DEAD) == [id]
        assert await queue.state(id) in ("done", None)

    async def test_a_renewed_lease_is_not_rescued(self, queue: QueueFixture) -> None:
        await queue.put()
        leases = await queue.claim()
        for _ in range(5):
            queue.clock.step(ITEM_LEASE - SECOND)
            renewed = await queue.store.renew(leases, ANN)
            assert not renewed.lost
            assert await queue.store.rescue(10) == []

    async def test_items_of_a_dead_owner_return_before_their_lease_ends(self, queue: QueueFixture) -> None:
        mine, other = await queue.put(queue.item(), queue.item())
        stale = await queue.claim(limit=1)
        await queue.claim(BEN, limit=1)
        (rescued,) = await queue.store.rescue_owned([ANN.owner, "nobody"], 10)
        assert (rescued.id, rescued.state, rescued.crashes) == (stale[0].id, ItemState.READY, 1)
        assert await queue.store.rescue_owned([ANN.owner], 10) == []
        assert await queue.store.rescue_owned([], 10) == []
        # The other owner keeps its items, and the dead owner can no longer write.
        assert [lease.id for lease in await queue.claim(BEN)] == [stale[0].id]
        assert await queue.settle(stale) == [stale[0].id]
        assert [await queue.state(id) for id in (mine, other)] == ["running", "running"]

    async def test_a_recovery_of_a_dead_owner_respects_its_limit(self, queue: QueueFixture) -> None:
        await queue.put(*(queue.item() for _ in range(5)))
        await queue.claim()
        assert [len(await queue.store.rescue_owned([ANN.owner], 2)) for _ in range(4)] == [2, 2, 1, 0]

    async def test_an_item_is_dead_after_the_death_of_its_third_owner(self, queue: QueueFixture) -> None:
        (id,) = await queue.put()
        for crash in (1, 2, 3):
            assert len(await queue.claim()) == 1
            (rescued,) = await queue.store.rescue_owned([ANN.owner], 10)
            assert rescued.crashes == crash
        assert rescued.state is ItemState.DEAD
        assert await queue.state(id) == "dead"

    async def test_a_cancelled_item_of_a_dead_owner_does_not_return(self, queue: QueueFixture) -> None:
        (id,) = await queue.put()
        await queue.claim()
        assert await queue.store.cancel(id, "no longer wanted")
        assert [each.state for each in await queue.store.rescue_owned([ANN.owner], 10)] == [ItemState.CANCELLED]

    async def test_a_lost_lease_cannot_be_renewed(self, queue: QueueFixture) -> None:
        (id,) = await queue.put()
        leases = await queue.claim()
        queue.clock.step(ITEM_LEASE + SECOND)
        await queue.store.rescue(10)
        assert list((await queue.store.renew(leases, ANN)).lost) == [id]

    async def test_an_item_is_dead_after_it_killed_three_workers(self, queue: QueueFixture) -> None:
        (id,) = await queue.put()
        for crash in (1, 2, 3):
            assert len(await queue.claim()) == 1
            queue.clock.step(ITEM_LEASE + SECOND)
            (rescued,) = await queue.store.rescue(10)
            assert rescued.crashes == crash
        assert rescued.state is ItemState.DEAD
        assert await queue.state(id) == "dead"
        assert await queue.claim() == []

    async def test_a_key_in_use_rejects_a_second_item(self, queue: QueueFixture) -> None:
        first, second = await queue.store.put([queue.item(key="k"), queue.item(key="k")])
        assert (first is None) != (second is None)
        assert await queue.store.put([queue.item(key="k"), queue.item(key="other")]) != [None, None]
        (lease, *_) = [lease for lease in await queue.claim() if lease.id in (first, second)]
        assert await queue.store.put([queue.item(key="k")]) == [None]
        await queue.settle([lease])
        assert None not in await queue.store.put([queue.item(key="k")])

    async def test_one_of_fifty_concurrent_puts_of_a_key_wins(self, queue: QueueFixture) -> None:
        put = await asyncio.gather(*(queue.store.put([queue.item(key="k")]) for _ in range(50)))
        assert sum(ids != [None] for ids in put) == 1

    async def test_urgent_items_come_first_and_others_do_not_starve(self, queue: QueueFixture) -> None:
        low, high = await queue.put(queue.item(urgency=0), queue.item(urgency=1))
        other_low, other_high = await queue.put(queue.item(urgency=0), queue.item(urgency=1))
        assert {lease.id for lease in await queue.claim(limit=1)} <= {high, other_high}
        (patient,) = await queue.claim(limit=1, reversed=True)
        assert patient.id in (low, other_low)

    async def test_an_item_cancelled_before_its_start_never_runs(self, queue: QueueFixture) -> None:
        (id,) = await queue.put()
        assert await queue.store.cancel(id, "no longer wanted")
        assert await queue.state(id) == "cancelled"
        assert await queue.claim() == []
        assert not await queue.store.cancel(id, "again")

    async def test_a_renewal_reports_the_cancellation_of_a_running_item(self, queue: QueueFixture) -> None:
        (id,) = await queue.put()
        leases = await queue.claim()
        assert await queue.store.cancel(id, "no longer wanted")
        assert list((await queue.store.renew(leases, ANN)).cancelled) == [id]

    async def test_a_cancelled_item_does_not_return(self, queue: QueueFixture) -> None:
        """Neither a retry nor the death of a worker puts a cancelled item back into the queue."""
        retried, orphaned = await queue.put(queue.item(), queue.item())
        leases = {lease.id: lease for lease in await queue.claim()}
        for id in (retried, orphaned):
            assert await queue.store.cancel(id, "no longer wanted")
        back = Settlement(state=ItemState.READY, available_at=queue.clock.now(), error="again")
        assert await queue.settle([leases[retried]], back) == []
        queue.clock.step(ITEM_LEASE + SECOND)
        assert [each.state for each in await queue.store.rescue(10)] == [ItemState.CANCELLED]
        assert [await queue.state(id) for id in (retried, orphaned)] == ["cancelled", "cancelled"]
        assert await queue.claim() == []

    async def test_a_revived_item_starts_from_scratch(self, queue: QueueFixture) -> None:
        (id,) = await queue.put()
        leases = await queue.claim()
        await queue.store.cancel(id, "no longer wanted")
        await queue.settle(leases, DEAD)
        assert await queue.store.revive(id)
        fresh = await queue.claim()
        assert not (await queue.store.renew(fresh, ANN)).cancelled

    async def test_a_dead_item_is_not_revived_while_its_key_is_in_use(self, queue: QueueFixture) -> None:
        (id,) = await queue.put(queue.item(key="k"))
        await queue.settle(await queue.claim(), DEAD)
        (other,) = await queue.put(queue.item(key="k"))
        assert not await queue.store.revive(id)
        await queue.settle(await queue.claim())
        assert await queue.state(other) in ("done", None)
        assert await queue.store.revive(id)

    async def test_a_stale_settlement_beside_a_fresh_one_is_lost(self, queue: QueueFixture) -> None:
        (id,) = await queue.put()
        stale = await queue.claim()
        queue.clock.step(ITEM_LEASE + SECOND)
        await queue.store.rescue(10)
        fresh = await queue.claim()
        emitting = Settlement(state=ItemState.DONE, follow_ups=(queue.item(),))
        for limit in (0, 10):
            result = await queue.store.settle_and_claim([(stale[0], emitting), (fresh[0], DONE)], ANN, limit)
            assert stale[0] in result.lost
            assert list(result.leases) == []  # the follow-ups of the stale settlement were not written
        assert await queue.state(id) in ("done", None)

    @pytest.mark.parametrize("limit", [0, 10])
    async def test_a_lost_lease_beside_successes_is_lost_alone(self, queue: QueueFixture, limit: int) -> None:
        """One call writes several successes together. If one of the leases was lost, its item must not be reported as
        written, and the other items must still be written.
        """
        lost_id, *others = await queue.put(queue.item(), queue.item(), queue.item())
        by_id = {lease.id: lease for lease in await queue.claim()}
        stale = by_id[lost_id]._replace(fence=by_id[lost_id].fence + 7)
        again = Settlement(state=ItemState.READY, wait=SECOND, error="again")
        endings = [(stale, DONE), (by_id[others[0]], DONE), (by_id[others[1]], again)]
        result = await queue.store.settle_and_claim(endings, ANN, limit)
        assert list(result.lost) == [stale]
        assert [await queue.state(lost_id), await queue.state(others[1])] == ["running", "ready"]
        assert await queue.state(others[0]) in ("done", None)
        assert await queue.settle([by_id[lost_id]]) == []
        assert await queue.settle([by_id[lost_id]]) == [lost_id]

    async def test_an_item_reports_its_last_allowed_crash(self, queue: QueueFixture) -> None:
        await queue.put()
        seen = []
        for _ in range(3):
            (lease,) = await queue.claim()
            seen.append(lease.is_last_chance)
            queue.clock.step(ITEM_LEASE + SECOND)
            await queue.store.rescue(10)
        assert seen == [False, False, True]

    async def test_the_orderly_end_of_an_attempt_resets_the_crash_count(self, queue: QueueFixture) -> None:
        """An item that crashes once a week but otherwise runs successfully must not become dead."""
        await queue.put()
        snoozed = Settlement(state=ItemState.READY, available_at=queue.clock.now(), gives_back=True, error="later")
        for _ in range(4):
            await queue.claim()
            queue.clock.step(ITEM_LEASE + SECOND)
            (rescued,) = await queue.store.rescue(10)
            assert rescued.state is ItemState.READY
            assert rescued.crashes == 1
            await queue.settle(await queue.claim(), snoozed)

    async def test_an_item_that_was_never_started_keeps_its_crash_count(self, queue: QueueFixture) -> None:
        await queue.put()
        for _ in range(2):
            await queue.claim()
            queue.clock.step(ITEM_LEASE + SECOND)
            await queue.store.rescue(10)
        back = Settlement(state=ItemState.READY, available_at=queue.clock.now(), gives_back=True, untried=True)
        await queue.settle(await queue.claim(), back)
        (lease,) = await queue.claim()
        assert lease.is_last_chance

    async def test_the_owners_of_leases_are_listed(self, queue: QueueFixture) -> None:
        await queue.put(queue.item(), queue.item(), queue.item())
        assert await queue.store.owners() == []
        leases = [*await queue.claim(ANN, limit=2), *await queue.claim(BEN)]
        assert sorted(await queue.store.owners()) == ["ann", "ben"]
        await queue.settle(leases[2:])
        assert await queue.store.owners() == ["ann"]

    async def test_a_claim_whose_answer_was_lost_returns_without_a_crash(self, queue: QueueFixture) -> None:
        await queue.put(*(queue.item() for _ in range(3)))
        known = await queue.claim(limit=1)
        stray = await queue.claim(limit=1)
        others = await queue.claim(BEN)
        released = await queue.store.release_stray("ann", known)
        assert list(released) == [lease.id for lease in stray]
        assert await queue.settle(stray) == [stray[0].id]
        assert not (await queue.store.renew([*known, *others], ANN)).lost
        (again,) = await queue.claim()
        assert [again.id, again.attempt] == [stray[0].id, 1]
        (rescued,) = [each for each in await queue.store.rescue_owned(["ann"], 10) if each.id == again.id]
        assert rescued.crashes == 1

    async def test_a_lost_claim_that_was_cancelled_does_not_return(self, queue: QueueFixture) -> None:
        (id,) = await queue.put()
        await queue.claim()
        await queue.store.cancel(id, "no longer wanted")
        assert list(await queue.store.release_stray("ann", [])) == [id]
        assert await queue.state(id) == "cancelled"

    async def test_a_paused_queue_hands_out_nothing_and_loses_nothing(self, queue: QueueFixture) -> None:
        await queue.put()
        await queue.pause(True)
        assert await queue.claim() == []
        await queue.pause(False)
        assert len(await queue.claim()) == 1

    async def test_settling_works_while_the_queue_is_paused(self, queue: QueueFixture) -> None:
        await queue.put()
        leases = await queue.claim()
        await queue.pause(True)
        assert await queue.settle(leases) == []

    async def test_follow_ups_are_written_with_the_settlement_or_not_at_all(self, queue: QueueFixture) -> None:
        await queue.put()
        leases = await queue.claim()
        emitting = Settlement(state=ItemState.DONE, follow_ups=(queue.item(), queue.item()))
        await queue.settle(leases, emitting)
        assert len(await queue.claim()) == 2
        await queue.settle(leases, emitting)  # the leases are stale now
        assert await queue.claim() == []

    async def test_settle_and_claim_are_one_step(self, queue: QueueFixture) -> None:
        await queue.put(*(queue.item() for _ in range(10)))
        leases = await queue.claim(limit=4)
        result = await queue.store.settle_and_claim([(lease, DONE) for lease in leases], ANN, 4)
        assert len(result.leases) == 4
        assert not {lease.id for lease in result.leases} & {lease.id for lease in leases}

    async def test_two_thousand_items_pass_through(self, queue: QueueFixture) -> None:
        for _ in range(4):
            await queue.put(*(queue.item() for _ in range(500)))
        seen: set[str] = set()
        endings: list[tuple[Lease, Settlement]] = []
        while (result := await queue.store.settle_and_claim(endings, ANN, 300)).leases:
            seen |= {lease.id for lease in result.leases}
            endings = [(lease, DONE) for lease in result.leases]
        assert len(seen) == 2_000
