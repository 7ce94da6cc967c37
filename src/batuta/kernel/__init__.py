"""The parts that every layer shares: clock, ids, JSON, masking, batches, deadlines."""

from batuta.kernel.batcher import Batcher, BatchLoader
from batuta.kernel.clock import Clock, SystemClock
from batuta.kernel.identity import has_ended, make_owner
from batuta.kernel.ids import Ids
from batuta.kernel.json import Json, dumps, loads
from batuta.kernel.storable import is_writable, json_object, make_writable, mask_text
from batuta.kernel.usercode import Late, Raised, Returned, call_with_deadline, name_of
from batuta.kernel.waiting import with_timeout

__all__ = [
    "BatchLoader",
    "Batcher",
    "Clock",
    "Ids",
    "Json",
    "Late",
    "Raised",
    "Returned",
    "SystemClock",
    "call_with_deadline",
    "dumps",
    "has_ended",
    "is_writable",
    "json_object",
    "loads",
    "make_owner",
    "make_writable",
    "mask_text",
    "name_of",
    "with_timeout",
]
