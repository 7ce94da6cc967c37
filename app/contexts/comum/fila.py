"""The interface with which services add items to a queue."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from batuta.queues import NewItem
from batuta.sql import Transaction


class Fila(Protocol):
    """A queue to which services add items. ``put`` returns the id of each new item, or None for an item whose key an
    unfinished item already has. ``shared`` maps column names to values that are the same for all new items.
    """

    async def put(
        self, items: Sequence[NewItem], within: Transaction | None = None, shared: Mapping[str, object] | None = None
    ) -> list[str | None]: ...
