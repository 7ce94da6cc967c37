"""The queue to which a service adds items."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from batuta.queues import NewItem
from batuta.sql import Transaction


class Fila(Protocol):
    """Interface of the engine's queues. ``put`` returns each new item's id, or None if an unfinished item has the same
    key. ``shared`` maps columns to a value that all items share.
    """

    async def put(
        self, items: Sequence[NewItem], within: Transaction | None = None, shared: Mapping[str, object] | None = None
    ) -> list[str | None]: ...
