"""Writes the endings of one queue, and claims its next items in the same transaction.

One bad row never fails a batch. A turn that the store refuses is split at once; a turn that times out is split over the next
turns (``unsettled``). A claim whose answer was lost leaves items that carry this process as their owner although no worker knows
them: for the length of a lease after a failed claim they are looked for and released, without counting an attempt or a crash.
"""

from collections.abc import Callable, Sequence

from batuta.kernel.clock import Clock
from batuta.kernel.errors import StatementRefused, StoreConflict, StoreTimeout, TransactionMisuse
from batuta.kernel.events import Events, ItemCrashed, ItemLost, ItemsSettled
from batuta.queue.item import ItemState, Lease
from batuta.queue.lease import Tenure
from batuta.queue.lease_keeper import recheck_after
from batuta.queue.outcome import Failed
from batuta.queue.recipe import Recipe
from batuta.queue.settle import Settlement
from batuta.queue.store import Endings, QueueStore, Turned
from batuta.queue.unsettled import Unsettled

# What a table of the application's own may raise when it refuses a value.
_REFUSALS = (StatementRefused, StoreConflict, TransactionMisuse, TypeError, ValueError, OverflowError)
# An ending whose effect times out alone this often has failed: retrying it cannot help.
MOST_TIMEOUTS = 3


class Settler:
    def __init__(
        self,
        queue: str,
        store: QueueStore,
        tenure: Tenure,
        recipe_of: Callable[[Lease], Recipe | None],
        clock: Clock,
        events: Events,
    ) -> None:
        self.unsettled = Unsettled(clock, recheck_after(tenure.lease), tenure.lease / 3)
        self.took: list[float] = []  # seconds that handlers took, since the last report
        self._queue = queue
        self._store = store
        self._tenure = tenure
        self._recipe_of = recipe_of
        self._clock = clock
        self._events = events
        self._is_claiming = False
        self._doubt_until: float | None = None  # a claim failed: items may carry our owner until then
        self._stray_check_at = 0.0

    @property
    def is_claiming(self) -> bool:
        return self._is_claiming

    async def turn(self, limit: int, *, reversed: bool = False) -> Sequence[Lease]:
        """Settle the endings that are ready, and claim up to ``limit`` items."""
        endings = self.unsettled.take()
        self._is_claiming = limit > 0
        try:
            leases = await self._settle_and_claim(endings, limit, reversed)
        except StoreTimeout:
            self._split(endings)
            self._doubt(limit)
            raise
        except BaseException:
            self.unsettled.put_back()  # the endings happened: they are written when the store is back
            self._doubt(limit)
            raise
        finally:
            self._is_claiming = False
        self.unsettled.progress()
        return leases

    async def release_strays(self, held: Sequence[Lease], *, at_once: bool = False) -> None:
        """Release items of this queue that carry our owner and are not ``held``. No claim may be in flight."""
        now = self._clock.monotonic()
        if self._doubt_until is None or (now < self._stray_check_at and not at_once):
            return
        await self._store.release_stray(self._tenure.owner, held)
        self._stray_check_at = now + self._tenure.lease.total_seconds() / 3
        if now >= self._doubt_until:
            self._doubt_until = None

    def report(self, endings: Endings, lost: Sequence[Lease]) -> None:
        counts: dict[str, int] = {}
        for lease, settlement in endings:
            if not lost or lease not in lost:
                counts[settlement.word] = counts.get(settlement.word, 0) + 1
        took, self.took = tuple(self.took), []
        self._events.emit(ItemsSettled(self._queue, counts, len(lost), took))

    def _doubt(self, limit: int) -> None:
        if limit:
            self._doubt_until = self._clock.monotonic() + self._tenure.lease.total_seconds()
            self._stray_check_at = 0.0

    async def _settle_and_claim(self, endings: Endings, limit: int, reversed: bool) -> Sequence[Lease]:
        try:
            turned = await self._store.turn(endings, self._tenure, limit, reversed=reversed)
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
        recipe = self._recipe_of(lease) or Recipe(handle=_nothing)
        return recipe.kept(recipe.settle(lease, Failed(why), recipe.retry))

    def _split(self, endings: Endings) -> None:
        """A turn timed out: the next ones settle fewer items, until the one that blocks is alone."""
        if self.unsettled.time_out() >= MOST_TIMEOUTS and endings[0][1].effect is not None:
            lease, settlement = endings[0]
            failed = self._failed_settlement(lease, settlement, StoreTimeout(where=self._queue, why="its effect"))
            self.unsettled.written([lease])
            self.unsettled.add(lease, failed)

    def _note_written(self, endings: Endings, turned: Turned) -> None:
        unchecked = {(lease.id, lease.fence) for lease in turned.unchecked}
        settled = [each for each in endings if (each[0].id, each[0].fence) not in unchecked] if unchecked else endings
        self.unsettled.written([lease for lease, _ in settled])
        self.unsettled.defer(turned.unchecked)
        if settled:
            self.report(settled, turned.lost)
        for lease in turned.lost:
            self._events.emit(ItemLost(self._queue, lease.id))


async def _nothing(lease: Lease) -> object:
    return None
