"""Generates UUIDs of version 7 as text. They sort by creation time."""

import secrets
import threading
from collections.abc import Callable

from batuta.kernel.clock import Clock

# RFC 9562 §6.2, method 1: a 12-bit counter follows the milliseconds, so ids of one millisecond stay in order.
_COUNTER_LIMIT = 1 << 12
_TAIL_BITS = 64
# The first digit of the random part contains the variant of the UUID in its two highest bits.
_VARIANT = {digit: "89ab"[int(digit, 16) & 0b11] for digit in "0123456789abcdef"}


class Ids:
    """Generates ids that never repeat and never decrease, even if the clock jumps. Several threads may use one
    generator.
    """

    def __init__(self, clock: Clock, chance: Callable[[int], int] = secrets.randbits) -> None:
        self._clock = clock
        self._chance = chance
        self._lock = threading.Lock()
        self._last_ms = 0
        self._counter = 0

    def new(self) -> str:
        return self.many(1)[0]

    def many(self, count: int) -> list[str]:
        """Return ``count`` ids in ascending order. The clock and the random source are read once for all ids."""
        tails = self._chance(_TAIL_BITS * count)
        with self._lock:
            unix_ms = max(int(self._clock.now().timestamp() * 1000), self._last_ms)
            counter = self._counter + 1 if unix_ms == self._last_ms else 0
            ids, digits, head = [], f"{tails:0{16 * count}x}", _head(unix_ms)
            for at in range(0, 16 * count, 16):
                if counter == _COUNTER_LIMIT:
                    # More than 4,096 ids in one millisecond: use the next millisecond instead of repeating an id.
                    unix_ms, counter = unix_ms + 1, 0
                    head = _head(unix_ms)
                ids.append(_join(head, counter, digits[at : at + 16]))
                counter += 1
            self._last_ms, self._counter = unix_ms, counter - 1
        return ids


def uuid7(unix_ms: int, counter: int, tail: int) -> str:
    """Build a UUID from 48 bits of milliseconds, 12 bits of counter and 62 random bits."""
    return _join(_head(unix_ms), counter, f"{tail:016x}")


def _join(head: str, counter: int, tail: str) -> str:
    return f"{head}{counter:03x}-{_VARIANT[tail[0]]}{tail[1:4]}-{tail[4:]}"


def _head(unix_ms: int) -> str:
    """Return the first part of an id: 48 bits of time and the version. All ids created in the same millisecond share
    this part.
    """
    digits = f"{unix_ms:012x}"
    return f"{digits[:8]}-{digits[8:]}-7"
