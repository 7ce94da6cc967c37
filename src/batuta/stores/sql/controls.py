"""The profile and the windows that count now, in ``app_settings``. A change and its note in the audit log are one transaction."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from batuta.kernel.errors import InvalidWindow
from batuta.kernel.events import ControlSet, Events
from batuta.kernel.ids import Ids
from batuta.kernel.json import Json
from batuta.runlog.log import Controls
from batuta.schedule.window import Window, read_window, written
from batuta.stores.sql.audit import AuditLog
from batuta.stores.sql.database import AsJson, Database, Query, Reading
from batuta.stores.sql.deciding_clock import DecidingClock
from batuta.stores.sql.engine_schema import BOOKS
from batuta.stores.sql.queries import load

PROFILE = "schedule_profile"
WINDOWS = "windows"


@dataclass(frozen=True, slots=True)
class ControlBook:
    controls: Query
    settle: Query


class SqlControls:
    def __init__(self, database: Database, ids: Ids, events: Events, *, own_time: bool = True) -> None:
        """``own_time``: False where PostgreSQL's clock decides since when a change counts."""
        self._database = database
        self._clock = DecidingClock(database.dialect, own_time=own_time)
        self._events = events
        self._book = load(ControlBook, BOOKS / "controls.sql", database.dialect)
        self._audit = AuditLog(database.dialect, ids)

    async def read(self, within: Reading | None = None) -> Controls:
        settings = await self._settings(within)
        profile = settings.get(PROFILE)
        return Controls(
            profile=profile if isinstance(profile, str) else None, windows=dict(_windows(settings.get(WINDOWS)))
        )

    async def changed_at(self, within: Reading) -> datetime | None:
        """When somebody last set one of them."""
        rows = await within.all(self._book.controls)
        return max((row["updated_at"] for row in rows), default=None)

    async def use_profile(self, profile: str, *, by: str, now: datetime) -> None:
        await self._change(PROFILE, lambda before: profile, by=by, now=now)

    async def set_window(self, name: str, window: Window, *, by: str, now: datetime) -> None:
        def with_it(before: Json) -> Json:
            others = dict(before) if isinstance(before, Mapping) else {}
            return {**others, name: written(window)}

        await self._change(WINDOWS, with_it, by=by, now=now)

    async def _change(self, name: str, change: Callable[[Json], Json], *, by: str, now: datetime) -> None:
        async with self._database.transaction() as transaction:
            now += await self._clock.ahead(transaction, now)
            before = (await self._settings(transaction)).get(name)
            after = change(before)
            await transaction.run(self._book.settle, name=name, setting=AsJson(after), now=now)
            await self._audit.note(
                transaction, actor=by, action="control.set", subject=name, before=before, after=after, now=now
            )
        self._events.emit(ControlSet(name, by))

    async def _settings(self, within: Reading | None) -> dict[str, Json]:
        rows = await (within or self._database).all(self._book.controls)
        return {row["name"]: row["setting"] for row in rows}


def _windows(setting: Json) -> Mapping[str, Window]:
    """What cannot be read any more is as if nobody had set it: one spoilt window must not stop every schedule."""
    found = {}
    for name, each in setting.items() if isinstance(setting, Mapping) else ():
        try:
            found[name] = read_window(name, **each)  # type: ignore[arg-type]
        except (TypeError, ValueError, AttributeError, OverflowError, InvalidWindow):
            continue
    return found
