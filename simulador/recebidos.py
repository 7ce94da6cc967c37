"""Record of the calls that a simulated service received."""

from collections import deque
from collections.abc import Mapping

from batuta.kernel import Clock, Json

KEPT = 1_000


class Recebidos:
    """Stores the newest ``KEPT`` calls to a simulated service, oldest first, each with its time of arrival."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: deque[Mapping[str, Json]] = deque(maxlen=KEPT)

    def record(self, **facts: Json) -> None:
        self._kept.append({"at": self._clock.now().isoformat(), **facts})

    def all(self) -> list[Mapping[str, Json]]:
        return list(self._kept)

    def clear(self) -> None:
        self._kept.clear()
