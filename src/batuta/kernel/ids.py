"""Generates UUIDs of version 7 as text. They sort by creation time."""

import secrets
import threading
from collections.abc import Callable

from batuta.kernel.clock import Clock

# RFC 9562 §6.2, method 1: a 12-bit counter follows the milliseconds, so ids of one millisecond stay in order.
_COUNTER_LIMIT = 1 << 12
_TAIL_BITS = 62
_TAIL = (1 << _TAIL_BITS) - 1


def uuid7(unix_ms: int, counter: int, tail: int) -> str:
    """Build a UUID from 48 bits of milliseconds, 12 bits of counter and 62 random bits."""
    digits = f"{(unix_ms << 80) | (0x7 << 76) | (counter << 64) | (0b10 << 62) | tail:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


class Ids:
    """Generates ids that never repeat and never decrease, even if the clock jumps. Thread-safe."""

    def __init__(self, clock: Clock, chance: Callable[[int], int] = secrets.randbits) -> None:
        self._clock = clock
        self._chance = chance
        self._lock = threading.Lock()
        self._last_ms = 0
        self._counter = 0

    def new(self) -> str:
        return self.many(1)[0]

    def many(self, count: int) -> list[str]:
        """Return several ids in ascending order. One read of the clock and of the random source serves all of them."""
        tails = self._chance(_TAIL_BITS * count)
        with self._lock:
            unix_ms = max(int(self._clock.now().timestamp() * 1000), self._last_ms)
            counter = self._counter + 1 if unix_ms == self._last_ms else 0
            ids = []
            for _ in range(count):
                if counter == _COUNTER_LIMIT:
                    # More than 4,096 ids in one millisecond: use the next millisecond instead of repeating an id.
                    unix_ms, counter = unix_ms + 1, 0
                ids.append(uuid7(unix_ms, counter, tails & _TAIL))
                counter, tails = counter + 1, tails >> _TAIL_BITS
            self._last_ms, self._counter = unix_ms, counter - 1
        return ids
