"""A loop that wakes the workers of this process when another process wrote something for them."""

import asyncio
from datetime import timedelta

from batuta.kernel.errors import StoreUnavailable
from batuta.stores.sql.database import ChangeListener, Database
from batuta.supervise.loop import Doorbell, Idle, Pace


class Wakeups:
    name = "ears"

    def __init__(self, database: Database) -> None:
        self.doorbell = Doorbell()
        self._database = database
        self._listener: ChangeListener | None = None
        self._bells: dict[str, list[Doorbell]] = {}

    def add(self, name: str, bell: Doorbell) -> None:
        """``bell`` rings when something was written for ``name``."""
        self._bells.setdefault(name, []).append(bell)

    def ring(self, name: str | None = None) -> None:
        for known, bells in self._bells.items():
            if name in (None, known):
                for bell in bells:
                    bell.ring()

    def _wake(self, name: str | None) -> None:
        self.ring(name)
        if name is None and self._database.dialect == "postgres":
            self.doorbell.ring()  # the connection is lost: reconnect now and not at the next probe

    async def tick(self) -> Pace:
        try:
            if self._listener is None:
                self._listener = await self._database.listen(self._wake)
                self.ring()  # whatever was said while nobody listened
            await self._listener.probe()
        except (StoreUnavailable, asyncio.CancelledError):  # away, or silent for so long that the watchdog stopped us
            await self._forget()
            raise
        return Idle()

    @property
    def every(self) -> timedelta:
        return timedelta(milliseconds=250) if self._database.dialect == "sqlite" else timedelta(seconds=15)

    async def drain(self, grace: timedelta) -> None:
        await self._forget()

    async def _forget(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            await listener.close()
