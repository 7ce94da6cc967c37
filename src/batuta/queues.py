"""Public names for queues on an application's own table: columns, items, handlers and retries."""

from batuta.queue.handler import ItemHandler
from batuta.queue.item import Lease, NewItem, QueueTable
from batuta.queue.outcome import LONGEST_ERROR, FullJitter, ItemEffect, RetryPolicy, Waits, Writes, after_seconds
from batuta.queue.store import Depth
from batuta.stores.arq import ARQ_RUNNER
from batuta.stores.sql.queue.indexes import index_ddl
from batuta.tasks.batch import BatchMembers, MemberCounts

__all__ = [
    "ARQ_RUNNER",
    "LONGEST_ERROR",
    "BatchMembers",
    "Depth",
    "FullJitter",
    "ItemEffect",
    "ItemHandler",
    "Lease",
    "MemberCounts",
    "NewItem",
    "QueueTable",
    "RetryPolicy",
    "Waits",
    "Writes",
    "after_seconds",
    "index_ddl",
]
