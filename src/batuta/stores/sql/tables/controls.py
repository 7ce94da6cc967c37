"""Settings that operators change at run time: profile and windows in ``app_settings``, switches in ``feature_flags``.

A change and its audit entry are written in one transaction.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from batuta.guard.switches import Switch
from batuta.kernel.errors import InvalidWindow
from batuta.kernel.events import ControlSet, Events, SwitchChanged
from batuta.kernel.ids import Ids
from batuta.kernel.storage.json import Json
from batuta.kernel.values import dataclass
from batuta.runlog.log import Controls
from batuta.schedule.window import Window, decode_window, encode_window
from batuta.stores.sql.database import AsJson, Database, Query, Reading, Row, from_row, read_clock
from batuta.stores.sql.migrations import STATEMENTS
from batuta.stores.sql.queries import load_queries
from batuta.stores.sql.tables.audit import AuditLog


async def read_offset(within: Reading, now: datetime, *, is_own: bool) -> timedelta:
    """Return how far the database's clock is ahead of ``now``. If ``is_own`` is true, the store uses this process's
    clock, so the result is zero.
    """
    return timedelta(0) if is_own else await read_clock(within) - now


PROFILE = "schedule_profile"
WINDOWS = "windows"


@dataclass(frozen=True, slots=True)
class ControlQueries:
    controls: Query
    settle: Query


class SqlControls:
    def __init__(self, database: Database, ids: Ids, events: Events, *, own_time: bool = True) -> None:
        """Create the store of the profile and the windows. If ``own_time`` is False, PostgreSQL's clock determines when
        a change was made.
        """
        self._database = database
        self._is_own = own_time or database.dialect == "sqlite"
        self._events = events
        self._queries = load_queries(ControlQueries, STATEMENTS / "controls.sql", database.dialect)
        self._audit = AuditLog(database.dialect, ids)

    async def read(self, within: Reading | None = None) -> Controls:
        settings = await self._settings(within)
        profile = settings.get(PROFILE)
        return Controls(
            profile=profile if isinstance(profile, str) else None, windows=dict(_windows(settings.get(WINDOWS)))
        )

    async def find_last_change(self, within: Reading) -> datetime | None:
        """Return the instant at which an operator last set the profile or a window, or None."""
        rows = await within.all(self._queries.controls)
        return max((row["updated_at"] for row in rows), default=None)

    async def use_profile(self, profile: str, *, by: str, now: datetime) -> None:
        await self._change(PROFILE, lambda before: profile, by=by, now=now)

    async def set_window(self, name: str, window: Window, *, by: str, now: datetime) -> None:
        def add_window(before: Json) -> Json:
            others = dict(before) if isinstance(before, Mapping) else {}
            return {**others, name: encode_window(window)}

        await self._change(WINDOWS, add_window, by=by, now=now)

    async def _change(self, name: str, change: Callable[[Json], Json], *, by: str, now: datetime) -> None:
        async with self._database.transaction() as transaction:
            now += await read_offset(transaction, now, is_own=self._is_own)
            before = (await self._settings(transaction)).get(name)
            after = change(before)
            await transaction.run(self._queries.settle, name=name, setting=AsJson(after), now=now)
            await self._audit.note(
                transaction, actor=by, action="control.set", subject=name, before=before, after=after, now=now
            )
        self._events.emit(ControlSet(name, by))

    async def _settings(self, within: Reading | None) -> dict[str, Json]:
        rows = await (within or self._database).all(self._queries.controls)
        return {row["name"]: row["setting"] for row in rows}


def _windows(setting: Json) -> Mapping[str, Window]:
    """Return the windows that can be decoded. An invalid window is skipped, so that it cannot stop every schedule."""
    found = {}
    for name, each in setting.items() if isinstance(setting, Mapping) else ():
        try:
            found[name] = decode_window(name, **each)  # type: ignore[arg-type]
        except (TypeError, ValueError, AttributeError, OverflowError, InvalidWindow):
            continue
    return found


@dataclass(frozen=True, slots=True)
class SwitchQueries:
    switch: Query
    all: Query
    set: Query


class SqlSwitches:
    def __init__(self, database: Database, ids: Ids, events: Events, *, own_time: bool = True) -> None:
        """Create the store of switches. If ``own_time`` is False, PostgreSQL's clock determines when a switch was set
        and when it expires.
        """
        self._database = database
        self._is_own = own_time or database.dialect == "sqlite"
        self._events = events
        self._queries = load_queries(SwitchQueries, STATEMENTS / "switches.sql", database.dialect)
        self._audit = AuditLog(database.dialect, ids)

    async def read(self, key: str, within: Reading | None = None) -> Switch | None:
        """Return a switch, or None if no operator has set it. If the switch is read in a claim's transaction, its value
        cannot change before that transaction ends.
        """
        row = await (within or self._database).one(self._queries.switch, key=key)
        return None if row is None else _switch(row)

    async def all(self, within: Reading | None = None) -> dict[str, Switch]:
        """Return all switches that operators have set, as a mapping from key to switch."""
        rows = await (within or self._database).all(self._queries.all)
        return {row["key"]: _switch(row) for row in rows}

    async def set(
        self, key: str, on: bool, *, by: str, reason: str, now: datetime, until: datetime | None = None
    ) -> Switch:
        async with self._database.transaction() as transaction:
            ahead = await read_offset(transaction, now, is_own=self._is_own)
            now, until = now + ahead, None if until is None else until + ahead
            before = await self.read(key, within=transaction)
            await transaction.run(
                self._queries.set, key=key, value=AsJson(on), reason=reason, until=until, by=by, now=now
            )
            await self._audit.note(
                transaction,
                actor=by,
                action="switch.set",
                subject=key,
                before=None if before is None else before.on,
                after={"on": on, "reason": reason, "until": None if until is None else until.isoformat()},
                now=now,
            )
            transaction.notify(None)  # the switch may have resumed queues, so wake all workers
        self._events.emit(SwitchChanged(key, on, by, reason, until))
        return Switch(key=key, on=on, reason=reason, until=until, set_by=by, set_at=now)


def _switch(row: Row) -> Switch:
    on = row["value"] if isinstance(row["value"], bool) else None
    return from_row(Switch, row, on=on, set_by=row["updated_by"], set_at=row["updated_at"])
