"""A loop: appointments whose task ended, or is gone, without a word to them."""

from datetime import timedelta
from typing import Final

from app.contexts.agendamentos.repository import appointment_book
from app.contexts.agendamentos.service import Agendamentos
from batuta.kernel.clock import Clock
from batuta.stores.sql.database import Database
from batuta.supervise.loop import Again, Doorbell, Idle, Pace

LOOK_EVERY: Final = timedelta(seconds=15)
# A task tells its appointment before it ends; this long after it did not.
SETTLED_FOR: Final = timedelta(seconds=10)
LOST_FOR: Final = timedelta(minutes=5)
AT_ONCE: Final = 200


class Conferente:
    name = "agendamentos-conferencia"

    def __init__(self, database: Database, agendamentos: Agendamentos, clock: Clock) -> None:
        self.doorbell = Doorbell()
        self._database = database
        self._agendamentos = agendamentos
        self._clock = clock
        self._book = appointment_book(database.dialect)

    async def tick(self) -> Pace:
        now = self._clock.now()
        rows = await self._database.all(
            self._book.orphans, settled_before=now - SETTLED_FOR, lost_before=now - LOST_FOR, limit=AT_ONCE
        )
        ended = [row for row in rows if row["task_status"] in ("failed", "cancelled")]
        for row in ended:
            error = row["task_error"] or row["task_status"]
            await self._database.run(self._book.give_up, id=row["id"], job=row["job"], error=error, now=now)
        lost = [str(row["id"]) for row in rows if row["task_status"] in (None, "complete")]
        if lost:
            async with self._database.transaction() as transaction:
                await self._agendamentos.reenfileirar(transaction, lost)
        return Again() if len(rows) == AT_ONCE else Idle()
