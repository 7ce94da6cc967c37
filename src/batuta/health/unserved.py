"""Items that wait in a queue or stage that no living worker serves: a task or a stage moved or went away between two versions."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta

from batuta.health.finding import Check, Finding, Report, Section, Severity, merged
from batuta.health.ready import PATIENCE
from batuta.health.workers import FORGOTTEN, Beats
from batuta.kernel.clock import Clock
from batuta.kernel.durations import brief
from batuta.queue.store import Unserved

# A worker that knows a moved task moves its rows within a minute: what is left after this long needs an operator.
REPORTED_AFTER = timedelta(minutes=5)
# Counting the items of removed stages reads the whole table of a pipeline.
STAGES_EVERY = timedelta(minutes=5)

Ask = Callable[[], Awaitable[Sequence[Unserved]]]


def unserved(tasks: Ask, stages: Ask, beats: Beats, now: Callable[[], datetime | None], clock: Clock) -> Check:
    asked = _AskedNowAndThen(stages, clock)

    async def ask() -> Report:
        if not (found := [*await tasks(), *await asked()]):
            return Report()
        signs = await beats.seen(within=FORGOTTEN, now=now())
        return judge_unserved(found, signs.living_loops, signs.now)

    return Check(name="unserved", section=Section.FILA, ask=ask, patience=2 * PATIENCE)


class _AskedNowAndThen:
    """Ask every few minutes; in between, the last answer counts."""

    def __init__(self, ask: Ask, clock: Clock) -> None:
        self._ask = ask
        self._clock = clock
        self._asked_at = float("-inf")
        self._answer: Sequence[Unserved] = ()

    async def __call__(self) -> Sequence[Unserved]:
        passed = self._clock.monotonic()
        # While something was found, ask each time: an operator who has decided wants to see it.
        if self._answer or passed - self._asked_at >= STAGES_EVERY.total_seconds():
            self._answer = await self._ask()
            self._asked_at = passed
        return self._answer


def judge_unserved(found: Iterable[Unserved], living_loops: Collection[str], now: datetime) -> Report:
    """During a deploy another version may serve the queue: its worker's loop lives."""
    by_queue: dict[str, list[Unserved]] = {}
    for each in found:
        if f"worker:{each.queue}" not in living_loops:
            by_queue.setdefault(each.queue, []).append(each)
    return merged(_queue(queue, items, now) for queue, items in sorted(by_queue.items()))


def _queue(queue: str, items: Sequence[Unserved], now: datetime) -> Report:
    since = min(each.oldest for each in items)
    if now - since <= REPORTED_AFTER:
        return Report()
    count = sum(each.count for each in items)
    finding = Finding(
        severity=Severity.ERROR,
        source="fila",
        cause=f"queue.orphaned.{queue}",
        says="queue_orphaned",
        facts={"queue": queue, "count": count, "age": brief(now - since)},
        value=count,
        threshold=0,
        since=since,
    )
    return Report(findings=(finding,), lost=10)
