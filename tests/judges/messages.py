"""Judge a real run of a sender: no message was sent twice, out of hours or unasked, and the final state recorded for
every message is correct.

``accepted`` comes from the code that enqueued, ``deliveries`` from the provider's own receipts, and ``ends`` from the
queue. These sources are independent, so that one bug cannot hide in all of them. The judge reads no clock and shares no
code with the components that it judges.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise


class MessageCheck(StrEnum):
    ONCE = "M1 once"
    TERMINAL = "M2 terminal"
    TRUTHFUL = "M3 truthful"
    IN_HOURS = "M4 in hours"
    IN_ORDER = "M5 in order"
    NO_GHOST = "M6 no ghost"


class End(StrEnum):
    """How a message ended, according to the queue."""

    DELIVERED = "delivered"
    FAILED = "failed"
    CANCELLED = "cancelled"
    PARKED = "parked"  # undecidable, so an operator decides
    OPEN = "open"  # the message still waits, or is in doubt


@dataclass(frozen=True, slots=True)
class Accepted:
    """A message that the queue accepted. ``place`` is its position in the order of messages to its recipient; None
    means that any order is correct.
    """

    id: str
    recipient: str
    at: datetime
    place: int | None = None


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message that was actually sent, recorded by the provider with its own clock."""

    id: str
    recipient: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Shut:
    """A period in which nothing may be sent, such as a pause or the time after an opt-out. If ``recipients`` is empty,
    the period applies to all recipients.
    """

    since: datetime
    until: datetime
    recipients: frozenset[str] = frozenset()

    def covers(self, delivery: Delivery) -> bool:
        is_meant = not self.recipients or delivery.recipient in self.recipients
        return is_meant and self.since <= delivery.at < self.until


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRules:
    """The rules that the judge applies. ``read_at`` is the time at which the evidence was read. ``within`` is the
    longest time that a message may take from its acceptance to its final state.
    """

    read_at: datetime
    within: timedelta
    is_open: Callable[[datetime], bool] = lambda at: True
    shut: Sequence[Shut] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class MessageViolation:
    check: MessageCheck
    id: str
    what: str

    def __str__(self) -> str:
        return f"{self.check}: {self.id}: {self.what}"


def judge_messages(
    accepted: Iterable[Accepted], deliveries: Iterable[Delivery], ends: Mapping[str, End], rules: SendRules
) -> list[MessageViolation]:
    """Check the messages that were sent, and return the rules that they violate. An empty list means that no rule is
    violated.
    """
    asked = {each.id: each for each in accepted}
    left = sorted(deliveries, key=lambda each: each.at)
    times = Counter(each.id for each in left)
    return [
        *_once(times),
        *_terminal(asked, ends, rules),
        *_truthful(asked, times, ends),
        *_in_hours(left, rules),
        *_in_order(asked, left),
        *_no_ghost(asked, left),
    ]


def _once(times: Mapping[str, int]) -> Iterator[MessageViolation]:
    for id, count in times.items():
        if count > 1:
            yield MessageViolation(MessageCheck.ONCE, id, f"left {count} times")


def _terminal(asked: Mapping[str, Accepted], ends: Mapping[str, End], rules: SendRules) -> Iterator[MessageViolation]:
    for id, each in asked.items():
        if id not in ends:
            yield MessageViolation(MessageCheck.TERMINAL, id, "accepted, and the queue does not know it")
        elif ends[id] is End.OPEN and rules.read_at - each.at >= rules.within:
            yield MessageViolation(MessageCheck.TERMINAL, id, f"has no end after {rules.read_at - each.at}")


def _truthful(
    asked: Mapping[str, Accepted], times: Mapping[str, int], ends: Mapping[str, End]
) -> Iterator[MessageViolation]:
    for id in asked:
        end, count = ends.get(id), times.get(id, 0)
        if end is End.DELIVERED and not count:
            yield MessageViolation(MessageCheck.TRUTHFUL, id, "said to have left, and it did not")
        elif end in (End.FAILED, End.CANCELLED) and count:
            yield MessageViolation(MessageCheck.TRUTHFUL, id, f"said to be {end}, and it left")


def _in_hours(left: Iterable[Delivery], rules: SendRules) -> Iterator[MessageViolation]:
    for each in left:
        if not rules.is_open(each.at):
            yield MessageViolation(MessageCheck.IN_HOURS, each.id, f"left out of hours, at {each.at.isoformat()}")
        elif any(shut.covers(each) for shut in rules.shut):
            yield MessageViolation(
                MessageCheck.IN_HOURS, each.id, f"left while it was forbidden, at {each.at.isoformat()}"
            )


def _in_order(asked: Mapping[str, Accepted], left: Iterable[Delivery]) -> Iterator[MessageViolation]:
    read: dict[str, list[Accepted]] = defaultdict(list)
    for each in left:
        if each.id in asked and asked[each.id].place is not None:
            read[each.recipient].append(asked[each.id])
    for messages in read.values():
        for before, after in pairwise(messages):
            if (before.place or 0) > (after.place or 0):
                yield MessageViolation(MessageCheck.IN_ORDER, after.id, f"left after {before.id}, which comes later")


def _no_ghost(asked: Mapping[str, Accepted], left: Iterable[Delivery]) -> Iterator[MessageViolation]:
    for each in left:
        if each.id not in asked:
            yield MessageViolation(MessageCheck.NO_GHOST, each.id, "left without being accepted")
        elif asked[each.id].recipient != each.recipient:
            yield MessageViolation(MessageCheck.NO_GHOST, each.id, "left for another recipient")
