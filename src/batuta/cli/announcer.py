"""Says once, on the terminal, that the system answers."""

import asyncio
import urllib.request
from collections.abc import Callable

from batuta.supervise.loop import Doorbell, Idle, Pace


class Announcer:
    """A loop that asks ``/health`` until it answers, and then rests for good."""

    name = "announcer"

    def __init__(self, address: str, announce: Callable[[], None]) -> None:
        self.doorbell = Doorbell()
        self._address = address
        self._announce = announce
        self._told = False

    async def tick(self) -> Pace:
        if not self._told and await asyncio.to_thread(answers, self._address):
            self._told = True
            self._announce()
        return Idle()


def answers(address: str) -> bool:
    """Somebody who speaks as we do is there."""
    try:
        with urllib.request.urlopen(f"{address}/health", timeout=1) as answer:  # noqa: S310 - our own address
            return bool(answer.status == 200) and b'"healthy"' in answer.read()
    except OSError:
        return False
