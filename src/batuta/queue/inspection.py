"""Filters, pages and error groups with which operators inspect a queue's items, and bulk changes to items.

A bulk change is stored as an operation. A loop performs it in batches, each in one transaction. So it continues after a
restart, and an operator can stop it.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Any, Protocol, Self

from batuta.kernel.errors import StoreUnavailable
from batuta.kernel.reasons import code_of, decode
from batuta.kernel.values import dataclass
from batuta.queue.item import ItemState
from batuta.supervise.loop import Again, Idle, LoopPolicy, Pace, Wakeup

BULK_POLICY = LoopPolicy(every=timedelta(seconds=2), stuck_after=timedelta(minutes=2), max_failures=20)
_VARYING = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|\b[0-9a-f]{8,}\b|\d+|'[^']*'|\"[^\"]*\"")


class BulkChange(StrEnum):
    """A change that an operator can make to many items at once."""

    RETRY = "retry"
    DISCARD = "discard"
    CANCEL = "cancel"


# The state of the items to which each change applies.
STATE_OF = {BulkChange.RETRY: ItemState.DEAD, BulkChange.DISCARD: ItemState.DEAD, BulkChange.CANCEL: ItemState.READY}


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemFilter:
    """Criteria for the items that an operator wants to see. ``error`` is the signature of an error group. ``before``
    excludes items created after that instant.
    """

    state: ItemState
    name: str | None = None
    error: str | None = None
    key: str | None = None
    tag: str | None = None
    before: datetime | None = None

    @property
    def is_narrow(self) -> bool:
        """Whether the filter contains a key, a tag or an instant. The stored counts of a queue are not grouped by these
        criteria, so the matching items must be counted.
        """
        return any(each is not None for each in (self.key, self.tag, self.before))

    def matches(self, name: object, error: str | None) -> bool:
        return self.name in (None, name) and self.error in (None, signature_of(name, error))

    def describe(self) -> dict[str, str]:
        before = None if self.before is None else self.before.isoformat()
        named = {"state": self.state.value, "name": self.name, "error": self.error, "key": self.key, "tag": self.tag}
        return {key: value for key, value in {**named, "before": before}.items() if value}

    @classmethod
    def restore(cls, stored: Mapping[str, Any]) -> Self:
        before = stored.get("before")
        return cls(
            state=ItemState(stored["state"]),
            before=None if before is None else datetime.fromisoformat(before),
            **{name: stored.get(name) for name in ("name", "error", "key", "tag")},
        )


@dataclass(frozen=True, slots=True)
class Place:
    """The position of the last item on a page: its value in the column that the page is sorted by, and its id."""

    at: datetime
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorGroup:
    """Dead items with the same error signature. ``error`` is the newest error in its stored form."""

    signature: str
    name: str
    error: str | None
    items: int
    since: datetime
    latest: datetime


@lru_cache(maxsize=8192)  # the page of dead items groups the same errors every few seconds
def signature_of(name: object, error: str | None) -> str:
    """Return the key of an error group. Errors that differ only in numbers, ids and quoted values have the same key."""
    reason = decode(error) or ""
    text = f"{name or ''}|{code_of(reason) or ''}|{_VARYING.sub('#', str(reason))}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def group_errors(rows: Iterable[Mapping[str, Any]]) -> list[ErrorGroup]:
    """Group rows of dead items by error signature, largest group first."""
    groups: dict[str, ErrorGroup] = {}
    for row in rows:
        key = signature_of(row["name"], row["error"])
        known = groups.get(key)
        is_newer = known is None or row["latest"] > known.latest
        groups[key] = ErrorGroup(
            signature=key,
            name=row["name"],
            error=row["error"] if is_newer or known is None else known.error,
            items=row["items"] + (known.items if known else 0),
            since=min(row["since"], known.since) if known else row["since"],
            latest=max(row["latest"], known.latest) if known else row["latest"],
        )
    return sorted(groups.values(), key=lambda group: -group.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkOperation:
    """A change to every item that a filter matches. ``seen`` counts the items compared with the filter; ``changed``
    counts those that matched and were changed.
    """

    id: str
    queue: str
    change: BulkChange
    filter: ItemFilter
    status: str  # ``running``, ``done`` or ``stopped``
    created_by: str
    created_at: datetime
    expected: int
    seen: int
    changed: int
    finished_at: datetime | None = None
    ticket: int = 0  # incremented by each batch, so that two processes never perform the same batch
    place: Place | None = None  # position of the last item that was compared with the filter

    @property
    def is_running(self) -> bool:
        return self.status == "running"


class BulkStore(Protocol):
    async def next(self) -> BulkOperation | None:
        """Return the oldest bulk operation that is unfinished, or None."""
        ...

    async def advance(self, operation: BulkOperation) -> bool:
        """Perform one batch of a bulk operation. Return whether more batches remain."""
        ...


class BulkOperator:
    """Loop that performs bulk operations, one batch per tick."""

    name = "bulk"

    def __init__(self, store: Callable[[], BulkStore]) -> None:
        self.wakeup = Wakeup()
        self._store = store

    async def tick(self) -> Pace:
        try:
            operation = await self._store().next()
            if operation is None:
                return Idle()
            await self._store().advance(operation)
        except StoreUnavailable:
            return Idle()
        return Again()
