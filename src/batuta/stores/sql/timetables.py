"""Timetables in ``job_timetables``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from batuta.queue.lease import Tenure
from batuta.runlog.timetables import OwnTimetable, Timetable
from batuta.stores.sql.database import Database, Query, Reading, Row, Transaction
from batuta.stores.sql.engine_schema import BOOKS
from batuta.stores.sql.queries import load

# A version that was deployed longer ago than so many others, and runs again, counts as a new one.
KEPT = 1_000


@dataclass(frozen=True, slots=True)
class TimetableBook:
    announce: Query
    renew: Query
    forget: Query
    rivals: Query
    newest: Query
    active: Query
    hold: Query
    activate: Query


class SqlTimetables:
    def __init__(self, database: Database, now: Callable[[], datetime | None]) -> None:
        """``now``: None where the database's own clock is used."""
        self._database = database
        self._now = now
        self._book = load(TimetableBook, BOOKS / "timetables.sql", database.dialect)

    async def announce(self, own: OwnTimetable, tenure: Tenure) -> None:
        is_new = await self._database.run(
            self._book.announce,
            fingerprint=own.fingerprint,
            jobs=own.jobs,
            release=own.release,
            owner=tenure.owner,
            now=self._now(),
        )
        if is_new:
            await self._database.run(self._book.forget, kept=KEPT)

    async def renew(self, own: OwnTimetable, tenure: Tenure) -> None:
        await self._database.run(self._book.renew, fingerprint=own.fingerprint, owner=tenure.owner, now=self._now())

    async def rivals(self, fingerprint: str) -> Sequence[Timetable]:
        """This timetable, the more recent ones and the active one."""
        return [_timetable(row) for row in await self._database.all(self._book.rivals, fingerprint=fingerprint)]

    async def newest(self, limit: int) -> Sequence[Timetable]:
        """The most recent ones first, and the active one."""
        return [_timetable(row) for row in await self._database.all(self._book.newest, limit=limit)]

    async def active(self, within: Reading) -> str | None:
        row = await within.one(self._book.active)
        return None if row is None else str(row["fingerprint"])

    async def hold(self, transaction: Transaction) -> Sequence[str]:
        """Lock all of them until the transaction ends, and return their fingerprints in the order of deployment."""
        return [row["fingerprint"] for row in await transaction.all(self._book.hold)]

    async def activate(self, transaction: Transaction, fingerprint: str) -> None:
        await transaction.run(self._book.activate, fingerprint=fingerprint)


def _timetable(row: Row) -> Timetable:
    return Timetable(
        fingerprint=row["fingerprint"],
        position=row["position"],
        jobs=row["jobs"],
        release=row["release_name"],
        first_seen_at=row["first_seen_at"],
        renewals=row["renewals"],
        renewed_at=row["renewed_at"],
        renewed_by=row["renewed_by"],
        has_been_active=row["activation"] > 0,
        is_active=row["is_active"],
    )
