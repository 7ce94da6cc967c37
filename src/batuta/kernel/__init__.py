"""The basic components that every layer uses: clock, ids, JSON, masking, batches, deadlines."""

from typing import TYPE_CHECKING, Final

from batuta.kernel.lazy import load_on_first_use

if TYPE_CHECKING:
    from batuta.kernel.batcher import Batcher, BatchLoader
    from batuta.kernel.calls.usercode import Late, Raised, Returned, call_with_deadline, name_of
    from batuta.kernel.clock import Clock, SystemClock
    from batuta.kernel.identity import has_ended, make_owner
    from batuta.kernel.ids import Ids
    from batuta.kernel.storage.encryption import PLAIN, Encryption, KeyRing
    from batuta.kernel.storage.json import Json, dumps, loads
    from batuta.kernel.storage.storable import is_writable, json_object, make_writable, mask_text
    from batuta.kernel.values import dataclass
    from batuta.kernel.waiting import with_timeout

__all__ = [
    "PLAIN",
    "BatchLoader",
    "Batcher",
    "Clock",
    "Encryption",
    "Ids",
    "Json",
    "KeyRing",
    "Late",
    "Raised",
    "Returned",
    "SystemClock",
    "call_with_deadline",
    "dataclass",
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

# Maps each module to the public names that it defines. A test compares this table with the imports under
# ``TYPE_CHECKING``.
_HOMES: Final = {
    "batuta.kernel.batcher": ("Batcher", "BatchLoader"),
    "batuta.kernel.clock": ("Clock", "SystemClock"),
    "batuta.kernel.storage.encryption": ("PLAIN", "Encryption", "KeyRing"),
    "batuta.kernel.identity": ("has_ended", "make_owner"),
    "batuta.kernel.ids": ("Ids",),
    "batuta.kernel.storage.json": ("Json", "dumps", "loads"),
    "batuta.kernel.storage.storable": ("is_writable", "json_object", "make_writable", "mask_text"),
    "batuta.kernel.calls.usercode": ("Late", "Raised", "Returned", "call_with_deadline", "name_of"),
    "batuta.kernel.values": ("dataclass",),
    "batuta.kernel.waiting": ("with_timeout",),
}

if not TYPE_CHECKING:  # hidden from the type checker, because with ``__getattr__`` it would accept every attribute name
    __getattr__ = load_on_first_use("batuta.kernel", _HOMES)
